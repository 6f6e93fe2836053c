"""One element as [] on one side and [1] on the other: torch 0.3 had no scalars. The number is the same."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule


def _steps(left: Leftovers) -> Iterator[Step]:
    for link in left.reshaped:
        if {link.source.shape, link.target.shape} == {(), (1,)}:
            yield Step(
                kind=StepKind.RESHAPE,
                source=link.source.name,
                target=link.target.name,
                rule=RULE.id,
                reason="One number, as [] on one side and as [1] on the other.",
                cost=Cost.LOSSLESS,
                evidence=Evidence.RULE,
                shape=link.target.shape,
            )


RULE = Rule(
    id="scalar-shape",
    title="[] and [1]",
    says="Turns a one-element vector into a scalar or back; no number changes.",
    cost=Cost.LOSSLESS,
    done="{tensors} of one element {are} reshaped",
    steps=_steps,
)
