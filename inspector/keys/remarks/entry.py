"""What a remark is: something that is known about a kind of file, apart from where its tensors go.

Rules place tensors. Remarks say what no placing can put right (a shard, packed numbers, an adapter without its base),
and what names and shapes cannot tell. A *reason* refuses, in the place of a general sentence; the rest are findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint, Shape, StateDict, TensorInfo
from inspector.findings import Evidence, Finding, Severity
from inspector.keys.draft import Draft
from inspector.keys.report import RepairPlan, StepKind

_MOST_SUBJECTS = 50


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One state dict, the target, and how far the rules came. refusal: why there is no plan so far, or ""."""

    checkpoint: Checkpoint
    state: StateDict
    target: Target
    made: Draft
    refusal: str
    plan: RepairPlan | None = None

    @cached_property
    def tensors(self) -> dict[str, TensorInfo]:
        """The file's tensors by name."""
        return {tensor.name: tensor for tensor in self.state.tensors}

    @cached_property
    def places(self) -> dict[str, Shape | None]:
        """The target's shapes by name."""
        return {tensor.name: tensor.shape for tensor in self.target.tensors}

    @cached_property
    def leaf_names(self) -> frozenset[str]:
        """The last segments of the target's names."""
        return frozenset(name.rpartition(".")[2] for name in self.places)

    @cached_property
    def used(self) -> frozenset[str]:
        """Tensors of the file that go somewhere."""
        steps = (step for step in self.made.steps if step.target is not None)
        return frozenset(name for step in steps for name in step.sources)

    @cached_property
    def unused(self) -> tuple[TensorInfo, ...]:
        """Tensors of the file that go nowhere. Not those that wait for an answer, or were not chosen: these fit."""
        away = self.made.not_chosen | {leaf.name for leaf in self.made.held}
        return tuple(t for t in self.state.tensors if t.name not in self.used and t.name not in away)

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """Places that the file has nothing for; none as long as an answer may still fill them."""
        return () if self.plan is None or self.plan.ambiguities else self.plan.missing

    @cached_property
    def goes(self) -> dict[str, str]:
        """{name in the file: name in the target} of all that is placed by name."""
        return {
            step.source: step.target
            for step in self.made.steps
            if step.source is not None and step.target is not None and step.kind is not StepKind.FILL
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One entry of `REMARKS`.

    id: of its finding. says: what it notices, one sentence (docs). reason: the sentence that refuses, "" when it has
    nothing against this file; find: what else is to be said. Both read names, shapes and types alone.
    """

    id: str
    says: str
    reason: Callable[[Seen], str] | None = None
    find: Callable[[Seen], Iterable[Finding]] | None = None


def cannot_tell(about: str, says: str, *, sure: bool = False, subjects: Iterable[str] = (), remedy: str) -> Finding:
    """What no file of this kind says. about: which convention ("rope-layout"). sure: the numbers do depend on it."""
    evidence: Evidence = (("about", about),)
    return Finding(
        id="cannot-tell",
        severity=Severity.WARNING if sure else Severity.NOTICE,
        says=says,
        subjects=tuple(subjects)[:_MOST_SUBJECTS],
        evidence=evidence,
        remedy=remedy,
    )


def told(ident: str, severity: Severity, says: str, *, subjects: Iterable[str] = (), remedy: str = "") -> Finding:
    """A finding with at most fifty subjects."""
    return Finding(id=ident, severity=severity, says=says, subjects=tuple(subjects)[:_MOST_SUBJECTS], remedy=remedy)
