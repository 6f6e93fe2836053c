"""The plan with which a file's weights may be run, as opposed to written.

Running loses nothing, so tensors that the model has no place for (a loss's class weights in a Lightning file) need no
consent here. Everything else that an export would ask about is asked here too: a model with a new head, an adapted
first layer or an open question would explain nothing.
"""

from __future__ import annotations

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import KeysDoNotFit
from inspector.keys.diagnose import diagnose
from inspector.keys.report import RepairPlan
from inspector.keys.rules import RULES
from inspector.units import counted

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


def say_placed(plan: RepairPlan) -> str:
    """How many of the network's tensors the plan takes from the file, and what it does to them: a clause."""
    goals = {step.target for step in plan.steps if step.target is not None}
    placed = {step.target for step in plan.steps if step.target is not None and step.source is not None}
    many = counted(len(goals), "tensor")
    whole = f"all {many} of the network come" if placed == goals else f"{len(placed):,} of the network's {many} come"
    done = "; ".join(use.says for use in plan.rules)
    return f"{whole} from the file{f' ({done})' if done else ''}"
