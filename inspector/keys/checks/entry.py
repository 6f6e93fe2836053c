"""What a check of a drafted repair is given, and the kinds of finding that several checks make.

Rules place tensors. Checks say what no placing can put right (a shard, packed numbers, an adapter without its base),
and what names and shapes cannot tell. They read names, shapes and types alone. A check that refuses does so in one
sentence, and the first of them that finds anything is the refusal (`REFUSALS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property

from inspector.architectures.types import Target
from inspector.checkpoint.name_forms import forms_of
from inspector.checkpoint.types import Checkpoint, Shape, StateDict, TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.draft import Draft
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import RepairPlan, StepKind
from inspector.keys.rules.entry import Questions
from inspector.units import counted

NO_FIT = FindingKind("no-fit", Severity.ERROR, "The file cannot be repaired for this target")
CANNOT_TELL = FindingKind(
    "cannot-tell", Severity.NOTICE, "A convention that neither names nor shapes show", also=(Severity.WARNING,)
)
# More names than a reader looks through; the number of all is in the sentence.
MOST_SUBJECTS = 50


@dataclass(frozen=True, kw_only=True)
class Context:
    """One state dict, the target, and how far the rules came."""

    checkpoint: Checkpoint
    state: StateDict
    target: Target
    draft: Draft
    # Those that came up while it was drafted; a check may ask more.
    questions: Questions
    # Whether places that nothing fills may stay at the model's initial value.
    partial: bool = False
    # Why what was placed is no repair by itself, "" when it is one or that was not asked yet.
    misfit: str = ""
    # None until it is known that nothing refuses.
    plan: RepairPlan | None = None

    def knowing(self, *, misfit: str = "", plan: RepairPlan | None = None) -> Context:
        """The same draft with what is known of it by now; what was worked out of its names stays."""
        later = replace(self, misfit=misfit or self.misfit, plan=plan or self.plan)
        kept = {name: value for name, value in vars(self).items() if name in _OF_THE_DRAFT}
        vars(later).update(kept)
        return later

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The file's names and shapes."""
        return tuple(Leaf(tensor.name, tensor.shape) for tensor in self.state.tensors)

    @cached_property
    def tensors(self) -> dict[str, TensorInfo]:
        """The file's tensors by name."""
        return {tensor.name: tensor for tensor in self.state.tensors}

    @cached_property
    def places(self) -> dict[str, Shape | None]:
        """The target's shapes by name."""
        return {tensor.name: tensor.shape for tensor in self.target.tensors}

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The forms of the names of both sides, of which is asked whether any has a pattern at all."""
        return tuple(forms_of((*self.tensors, *self.places)))

    @cached_property
    def leaf_names(self) -> frozenset[str]:
        """The last segments of the target's names."""
        return frozenset(name.rpartition(".")[2] for name in self.places)

    @cached_property
    def used(self) -> frozenset[str]:
        """Tensors of the file that go somewhere."""
        steps = (step for step in self.draft.steps if step.target is not None)
        return frozenset(name for step in steps for name in step.sources)

    @cached_property
    def unused(self) -> tuple[TensorInfo, ...]:
        """Tensors of the file that go nowhere. Not those that wait for an answer, or were not chosen: these fit."""
        away = self.draft.not_chosen | {leaf.name for leaf in self.draft.held}
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
            for step in self.draft.steps
            if step.source is not None and step.target is not None and step.kind is not StepKind.FILL
        }


# What a `Context` works out and neither the plan nor a misfit changes.
_OF_THE_DRAFT = frozenset({"leaves", "tensors", "places", "forms", "leaf_names", "used", "unused", "goes"})


def refusing(reason: Callable[[Context], str]) -> Check[Context]:
    """A check that refuses with this sentence, unless it is empty."""

    def find(context: Context) -> Iterator[Finding]:
        if says := reason(context):
            yield NO_FIT.found(says, remedy="Choose another target, or a file of this network.")

    return Check(kinds=(NO_FIT,), find=find)


class Side(Enum):
    """Whose names a row looks at."""

    # The file's that go nowhere.
    UNUSED = auto()
    # The target's that nothing fills.
    LACKING = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRow:
    """What is noticed by names alone: a pattern, and what it means that names of one side have it."""

    kind: FindingKind
    side: Side
    pattern: str
    # With {tensors} for their number, and {first}.
    says: str
    remedy: str
    # Only where all names of that side have the pattern.
    all_of_them: bool = False


def by_names(row: NameRow) -> Check[Context]:
    """The check that a row stands for."""
    pattern = re.compile(row.pattern)

    def find(context: Context) -> Iterator[Finding]:
        unused = row.side is Side.UNUSED
        names = [tensor.name for tensor in context.unused] if unused else context.lacking
        matches = [name for name in names if pattern.search(name)]
        if not matches or (row.all_of_them and len(matches) < len(names)):
            return
        says = row.says.format(tensors=counted(len(matches), "tensor"), first=matches[0])
        yield row.kind.found(says, subjects=matches[:MOST_SUBJECTS], remedy=row.remedy)

    return Check(kinds=(row.kind,), find=find)


def cannot_tell(about: str, says: str, *, sure: bool = False, subjects: Iterable[str] = (), remedy: str) -> Finding:
    """What no file of this kind says. about: which convention ("rope-layout"). sure: the numbers do depend on it."""
    return CANNOT_TELL.found(
        says,
        severity=Severity.WARNING if sure else Severity.NOTICE,
        subjects=list(subjects)[:MOST_SUBJECTS],
        evidence=(("about", about),),
        remedy=remedy,
    )
