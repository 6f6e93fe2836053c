"""The quiet twins: every architecture of the index against itself, as it is and under `module.`.

As it is, a file must load without a rule and without a question; under `module.`, by exactly one rule.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.keybench.files import checkpoint_of
from inspector.architectures.index import Entry, load_index
from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec
from inspector.keys.diagnose import diagnose


class Twin(NamedTuple):
    """One entry against itself. failure: what was other than it should be, "" when nothing was. tensors: how many."""

    label: str
    wrapped: bool
    tensors: int
    seconds: float
    failure: str


def plain_entries() -> tuple[Entry, ...]:
    """One per builder, as the builder makes it by default."""
    return tuple(entry for entry in load_index().entries if not entry.options and not entry.needs_classes)


def twins(entries: Sequence[Entry]) -> Iterator[Twin]:
    for entry in entries:
        target = target_of(ArchitectureSpec(library=entry.library, name=entry.name))
        for wrapped in (False, True):
            prefix = "module." if wrapped else ""
            checkpoint = checkpoint_of({prefix + t.name: t.shape or () for t in target.tensors})
            started = time.process_time()
            report = diagnose(checkpoint, target)
            seconds = time.process_time() - started
            plan = report.plan
            said = [] if plan is None else [use.says for use in plan.rules] + [q.id for q in plan.ambiguities]
            wanted = ['drop the segment "module"'] if wrapped else []
            good = plan is not None and plan.complete and said == wanted and report.loads is not wrapped
            placed = {} if plan is None else {step.source: step.target for step in plan.steps}
            if good and any(source != f"{prefix}{place}" for source, place in placed.items()):
                good, said = False, ["a tensor is in the wrong place"]
            yield Twin(entry.label, wrapped, len(target.tensors), seconds, "" if good else f"{report.says} {said}")
