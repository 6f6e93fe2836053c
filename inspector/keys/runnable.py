"""The plan with which a file's weights may be run, as opposed to written.

Running loses nothing, so tensors that the model has no place for (a loss's class weights in a Lightning file) need no
consent here. Everything else that an export would ask about is asked here too: a model with a new head, an adapted
first layer or an open question would explain nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.architectures.index import load_index
from inspector.architectures.match import holds_trunk, is_called_near
from inspector.architectures.targets import target_of_candidate
from inspector.architectures.types import Candidate, Recognition, Target
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import KeysDoNotFit
from inspector.keys.diagnose import diagnose
from inspector.keys.report import RepairPlan, StepKind
from inspector.keys.rules import RULES
from inspector.units import counted, human_shape, shorten_middle

# Rules that need no yes where nothing is written.
WITHOUT_CONSENT = tuple(rule.id for rule in RULES if rule.drops_unplaced)


def plan_to_run(checkpoint: Checkpoint, target: Target, state: StateDict | None = None) -> RepairPlan:
    """A complete plan. Raises KeysDoNotFit, with the diagnosis, when there is none."""
    report = diagnose(checkpoint, target, state=state, accept=WITHOUT_CONSENT)
    which = next((q for q in report.plan.ambiguities if q.id == "state"), None) if report.plan else None
    if which is not None:
        # A picture can be looked at with either; pages and commands say which set of weights they run.
        choose = {which.id: which.options[0][0]}
        report = diagnose(checkpoint, target, accept=WITHOUT_CONSENT, choose=choose)
    if report.plan is None or not report.plan.complete:
        raise KeysDoNotFit(
            report.refusal or report.says, hint="A model with wrong or missing weights would explain nothing."
        )
    return report.plan


def why_another(checkpoint: Checkpoint, recognition: Recognition, state: StateDict | None = None) -> str:
    """Why what its best candidate computes and costs is not the file's, as a sentence; "" where it is, or where there
    is no candidate.

    It is not the file's where the file is only near the candidate, and no repair makes it that. state: None for the
    likeliest weights.
    """
    best = recognition.best
    if best is None or best.exact or not _is_near(best):
        return ""
    try:
        plan_to_run(checkpoint, target_of_candidate(best), state)
    except KeysDoNotFit:
        return f"This file is not {best.spec.label}: {_difference(best)}."
    return ""


def whose_costs(checkpoint: Checkpoint, recognition: Recognition, state: StateDict | None = None) -> str:
    """Where the file holds more or less than its best candidate, as which its pass is counted and drawn: whose costs
    these are, as a sentence; "" where they are the file's own, and where `why_another` says that they are not.

    state: None for the likeliest weights.
    """
    best = recognition.best
    if best is None or best.exact:
        return ""
    missing: list[str] = []
    try:
        plan = plan_to_run(checkpoint, target_of_candidate(best), state)
        beside = [s.source for s in plan.steps if s.kind is StepKind.DROP and s.source is not None]
    except KeysDoNotFit:
        if _is_near(best):
            return ""
        beside, missing = list(best.extra), [name for name in best.missing if not is_bookkeeping(name)]
    beside = [name for name in beside if not is_bookkeeping(name)]
    parts = []
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        parts.append(f"{counted(len(missing), 'tensor')} of it ({_first(missing)}) {verb} not in the file")
    if beside:
        verb = "takes" if len(beside) == 1 else "take"
        parts.append(f"{counted(len(beside), 'tensor')} of the file ({_first(beside)}) {verb} no part in it")
    if not parts:
        return ""
    return f"The pass, its costs and its drawing are those of the whole {best.spec.label}: {', and '.join(parts)}."


def _is_near(best: Candidate) -> bool:
    """Whether the file is only near it: neither it, nor a part of it, nor something that contains it."""
    entry = load_index().of(best.spec)
    return is_called_near(best, is_trunk=entry is not None and holds_trunk(best, entry))


def _first(names: Sequence[str]) -> str:
    return f"{shorten_middle(names[0], 80)}{' first' if len(names) > 1 else ''}"


def _difference(candidate: Candidate) -> str:
    """The first tensor of another shape; where there is none, how many have no counterpart."""
    if candidate.reshaped:
        name, own, theirs = candidate.reshaped[0]
        more = f", and {len(candidate.reshaped) - 1:,} more differ" if len(candidate.reshaped) > 1 else ""
        return f"its {shorten_middle(name, 80)} is {human_shape(own)}, not {human_shape(theirs)}{more}"
    missing, extra = counted(len(candidate.missing), "tensor"), counted(len(candidate.extra), "tensor")
    return f"{missing} of it are not in the file, and {extra} of the file not in it"


def say_placed(plan: RepairPlan) -> str:
    """How many of the network's tensors the plan takes from the file, and what it does to them: a clause."""
    goals = {step.target for step in plan.steps if step.target is not None}
    placed = {step.target for step in plan.steps if step.target is not None and step.source is not None}
    many = counted(len(goals), "tensor")
    whole = f"all {many} of the network come" if placed == goals else f"{len(placed):,} of the network's {many} come"
    done = "; ".join(use.says for use in plan.rules)
    return f"{whole} from the file{f' ({done})' if done else ''}"
