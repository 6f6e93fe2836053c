"""Learned positions of a language model that was trained with longer texts: the target keeps the first (nanoGPT's
`crop_block_size`).

A text's positions are counted from its beginning, so the first rows are what the shorter model computes with. Those of
a picture are a grid, which is resized and never cut: a network with a kernel over pictures or sounds is left alone. A
few rows more may be an offset in front (OPT, BART, with two): these are left alone as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.words import read
from inspector.keys.report import Cost, Step
from inspector.keys.rules.entry import Leftovers, Link, Rule, adapt

_LEAST = 5


def _is_longer(link: Link) -> bool:
    ours, theirs = link.source.shape or (), link.target.shape or ()
    if len(ours) not in (2, 3) or len(ours) != len(theirs) or ours[-1] != theirs[-1] or ours[:-2] != theirs[:-2]:
        return False
    if len(ours) == 3 and ours[0] != 1:
        return False
    return (
        ours[-2] - theirs[-2] >= _LEAST
        and theirs[-2] >= _LEAST
        and all(
            "position embedding" in read(tuple(x.name.removesuffix(".weight").split(".")), 0).roles
            for x in (link.source, link.target)
        )
    )


def _steps(left: Leftovers) -> Iterator[Step]:
    longer = [link for link in left.reshaped if _is_longer(link)]
    if len(longer) != 1:
        return
    link = longer[0]
    if any(len(x.shape or ()) > 2 and x.name != link.target.name for x in left.target.tensors):
        return
    old, new = ((x.shape or (0, 0))[-2] for x in (link.source, link.target))
    says = f"{old:,} positions in the file, {new:,} in the target: the first are kept."
    yield adapt(link, rule=RULE.id, reason=says, value="first-rows")


RULE = Rule(
    id="fewer-positions",
    title="Shorter texts",
    says="Keeps the first learned positions of a language model whose target takes shorter texts.",
    cost=Cost.LOSSY,
    done="the first positions are kept",
    steps=_steps,
)
