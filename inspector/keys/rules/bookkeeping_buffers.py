"""Counters that one side has and the other has not, and that no output depends on in evaluation.

num_batches_tracked came with torch 0.4.1 and matters only for further training with momentum=None. total_ops and
total_params are left behind by a FLOP counter (thop), n_averaged by weight averaging. OpenAI's CLIP archives note three
sizes of the network; none of these is made up where the file has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inspector.checkpoint.bookkeeping import COUNTERS, EXTRA_STATE, NOTED
from inspector.findings import Severity
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule

_WHY = {**COUNTERS, **NOTED, EXTRA_STATE: "a module's private state, not a weight"}


def _is_counter(name: str, shape: tuple[int, ...] | None, known: Collection[str]) -> str:
    """The leaf name when this is such a counter, "" otherwise: a tensor of many numbers is none, whatever its name."""
    last = name.rpartition(".")[2]
    return last if last in known and shape in ((), (1,), None) else ""


def _steps(left: Leftovers) -> Iterator[Step]:
    for leaf in left.extra:
        if last := _is_counter(leaf.name, leaf.shape, {*COUNTERS, *NOTED}):
            yield Step(
                kind=StepKind.DROP,
                source=leaf.name,
                target=None,
                rule=RULE.id,
                reason=f"The target has no {last} here: {_WHY[last]}.",
                cost=Cost.LOSSLESS,
                evidence=Evidence.RULE,
            )
    for leaf in left.missing:
        if last := _is_counter(leaf.name, leaf.shape, COUNTERS):
            yield Step(
                kind=StepKind.FILL,
                source=None,
                target=leaf.name,
                rule=RULE.id,
                reason=f"The file has no {last} here: {_WHY[last]}. Starts at 0.",
                cost=Cost.LOSSLESS,
                evidence=Evidence.RULE,
                shape=leaf.shape or (),
                value="zero",
            )


RULE = Rule(
    id="bookkeeping-buffers",
    title="Bookkeeping buffers",
    says=(
        "Drops counters that the target lacks, starts missing ones at 0: num_batches_tracked, total_ops, n_averaged; "
        "drops the sizes that OpenAI's CLIP archives note."
    ),
    cost=Cost.LOSSLESS,
    done="{counters}",
    severity=Severity.INFO,
    one_per_layer=True,
    steps=_steps,
)
