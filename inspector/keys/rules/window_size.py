"""A window transformer for windows of another size: tables of (2 w - 1)^2 relative positions, and the index into them.

The tables are resized as pictures, which such networks are fine-tuned from; the numbers are new ones. The index follows
from the window: the file's is left out if it is its window's own, and the target's computed. Every table of the file
must come from one window and go to one, or nothing is touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from inspector.keys.operations.computed import COMPUTED
from inspector.keys.placing.roles import split_name
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, adapt

_TABLE, _INDEX = "relative_position_bias_table", "relative_position_index"
_CLASS_TOKEN = 3


def _sides(link: Link) -> tuple[int, int, int] | None:
    """(side of the window in the file, in the target, rows that are kept), None where this is no such pair."""
    ours, theirs = link.source.shape or (), link.target.shape or ()
    if split_name(link.target.name)[1] != _TABLE or len(ours) != 2 or len(theirs) != 2 or ours[1] != theirs[1]:
        return None
    for kept in (0, _CLASS_TOKEN):
        old, new = _side(ours[0] - kept), _side(theirs[0] - kept)
        if old and new:
            return old, new, kept
    return None


def _side(rows: int) -> int:
    root = math.isqrt(max(rows, 0))
    return (root + 1) // 2 if root > 1 and root % 2 and root * root == rows else 0


def _steps(left: Leftovers) -> Iterator[Step]:
    tables = [(link, sides) for link in left.reshaped if (sides := _sides(link)) is not None]
    if len({sides for _, sides in tables}) != 1:
        return
    old, new, kept = tables[0][1]
    settled = [link for link in left.settled if split_name(link.target.name)[1] == _TABLE]
    if any(_side((link.target.shape or (0,))[0] - kept) != 0 for link in settled):
        return  # some of the windows are of another size: two networks
    for link, _ in tables:
        yield adapt(
            link,
            rule=RULE.id,
            reason=f"A window of {old} x {old} in the file, of {new} x {new} in the target: resized bicubically.",
            value=f"resize-table:{kept}",
        )
    pairs = COMPUTED["window-pairs"]
    for link in left.reshaped:
        ours, theirs = link.source.shape or (), link.target.shape or ()
        is_index = split_name(link.target.name)[1] == _INDEX and math.prod(ours) == old**4
        if is_index and math.prod(theirs) == new**4 and pairs.fits(ours) and pairs.fits(theirs):
            drop = Step(
                kind=StepKind.DROP,
                source=link.source.name,
                target=None,
                rule=RULE.id,
                reason="The index of the file's own window, left out if it is that.",
                cost=Cost.LOSSLESS,
                evidence=Evidence.RULE,
                shape=ours,
                value="computed:window-pairs",
            )
            yield drop
            says = "The index of the target's window, which follows from its size."
            yield replace(drop, kind=StepKind.FILL, source=None, target=link.target.name, shape=theirs, reason=says)


RULE = Rule(
    id="window-size",
    title="Other window size",
    says="Resizes a window transformer's tables of relative positions to windows of another size.",
    cost=Cost.LOSSY,
    done="the tables of relative positions are resized",
    steps=_steps,
)
