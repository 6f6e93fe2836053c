"""A last layer for another number of classes.

The file's head is of no use then: it is left out and the target's stays at the model's initial value, to be trained.
It is never padded or cut, which would load and mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.roles import split_name
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule
from inspector.units import human_shape

# A table of relative positions also has rows of its own number, and is no layer.
_LEAVES = ("weight", "bias")
# An inception net has two heads, a detector with masks three.
_MOST_HEADS = 3


def _heads(left: Leftovers) -> list[Link]:
    candidates = [link for link in left.reshaped if _only_rows_differ(link)]
    if left.target.heads:
        return [link for link in candidates if link.target.name in left.target.heads]
    # Without the architecture's own word for it: few modules, whole, all from the same old to the same new count,
    # and no other shape that differs for another reason.
    candidates = [link for link in candidates if split_name(link.target.name)[1] in _LEAVES]
    counts = {(_rows(link.source.shape), _rows(link.target.shape)) for link in candidates}
    modules = {split_name(link.target.name)[0] for link in candidates}
    matrices = [link for link in candidates if len(link.target.shape or ()) >= 2]
    if len(counts) != 1 or len(modules) > _MOST_HEADS or len(matrices) < len(modules):
        return []
    return candidates


def _rows(shape: tuple[int, ...] | None) -> int:
    return shape[0] if shape else 0


def _only_rows_differ(link: Link) -> bool:
    ours, theirs = link.source.shape, link.target.shape
    return bool(ours and theirs) and len(ours or ()) == len(theirs or ()) and (ours or ())[1:] == (theirs or ())[1:]


def _steps(left: Leftovers) -> Iterator[Step]:
    for link in _heads(left):
        ours, theirs = link.source.shape or (), link.target.shape or ()
        yield Step(
            kind=StepKind.DROP,
            source=link.source.name,
            target=None,
            rule=RULE.id,
            reason=f"{human_shape(ours)} in the file, {human_shape(theirs)} in the target: another number of classes.",
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
        )
        yield Step(
            kind=StepKind.FILL,
            source=None,
            target=link.target.name,
            rule=RULE.id,
            reason=f"The file has a head for {_rows(ours):,} classes; this one stays untrained, at its initial value.",
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
            shape=theirs,
            value="initial",
        )


RULE = Rule(
    id="head-mismatch",
    title="Other number of classes",
    says="Leaves out a head for another number of classes; the target's head stays at its initial value.",
    cost=Cost.LOSSY,
    done="the head, made for another number of classes, stays untrained",
    replaces_head=True,
    steps=_steps,
)
