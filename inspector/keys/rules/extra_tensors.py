"""Tensors that the target has no place for: a loss's weights, an auxiliary head, a detector around a backbone."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule
from inspector.units import human_shape


def _steps(left: Leftovers) -> Iterator[Step]:
    for leaf in left.extra:
        yield Step(
            kind=StepKind.DROP,
            source=leaf.name,
            target=None,
            rule=RULE.id,
            reason=f"The target has no place for {leaf.name} ({human_shape(leaf.shape or ())}).",
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
        )


RULE = Rule(
    id="extra-tensors",
    title="Tensors without a place",
    says="Leaves out tensors that the target has no place for.",
    cost=Cost.LOSSY,
    done="{tensors} without a place {are} left out",
    steps=_steps,
)
