"""The part of a repair that a file cut short still allows: what is whole in it, each on the place that the whole plan
gives it.

The names of a cut file are often all there. So the plan is made of all of them, and proved by all of them; only then
what has not every number is left out. Nothing is placed by what happens to be left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.findings import Severity
from inspector.keys import sentences
from inspector.keys.apply import needed_by, state_of, whole_and_cut
from inspector.keys.checks.repair import MISSING_TENSORS
from inspector.keys.report import Cost, Evidence, KeyReport, RepairPlan, Step, StepKind
from inspector.keys.rules.entry import Rule
from inspector.units import counted

#: Why a step leaves a tensor out that the file does not hold whole.
NOT_WHOLE = "Not whole in the file."


def with_cut(
    checkpoint: Checkpoint, report: KeyReport, target: Target, *, partial: bool, rules: Sequence[Rule]
) -> KeyReport:
    """The diagnosis with what the file does not hold whole: as an error, or for whom a part is enough with the plan of
    `whole_part`. The same for a file that is whole."""
    if report.plan is None or not report.plan.lost or report.plan.ambiguities:
        return report
    state = state_of(checkpoint, report.plan)
    cut = whole_and_cut(checkpoint, state.tensors)[1]
    plan = whole_part(checkpoint, state, report.plan) if partial else report.plan
    others = [finding for finding in report.findings if finding.id != MISSING_TENSORS.id]
    if plan is report.plan:
        lost = MISSING_TENSORS.found(
            f"{len(cut):,} of {counted(len(state.tensors), 'tensor')} of the file are not whole in it.",
            subjects=[tensor.name for tensor in cut],
            remedy="Download or copy it again. A partial repair (--partial) takes the tensors that are whole.",
        )
        return replace(report, findings=(lost, *report.findings)) if cut else report
    says = sentences.say_whole_part(plan, target, rules=rules, shapes={t.name: t.shape for t in state.tensors})
    missing = MISSING_TENSORS.found(
        f"{len(plan.missing):,} of {counted(len(target.tensors), 'tensor')} are not whole in the file, or not there, "
        "and stay at the model's initial value.",
        severity=Severity.WARNING,
        subjects=plan.missing,
        remedy="Get the whole file where you can; else load with strict=False, as the written code does, and train "
        "them before use.",
    )
    return replace(report, plan=plan, says=says, compared=says, findings=(missing, *others))


def whole_part(checkpoint: Checkpoint, state: StateDict, plan: RepairPlan) -> RepairPlan:
    """A complete plan for the tensors that the file holds whole; the same where it loses none, or all, and where what
    is to be left out could not be looked at first.

    Places that need a tensor which is not whole are `missing`, as of a part. Every tensor of the file is still in a
    step: those that go nowhere are left out, with the reason.
    """
    cut = {tensor.name for tensor in whole_and_cut(checkpoint, state.tensors)[1]}
    spoiled = [step for step in plan.steps if not cut.isdisjoint(needed_by(step))]
    if not plan.complete or not spoiled or any(step.target is None for step in spoiled):
        return plan
    kept = [step for step in plan.steps if cut.isdisjoint(needed_by(step))]
    if not any(step.sources and step.target is not None for step in kept):
        return plan
    settled = {name for step in kept for name in step.takes}
    waiting = dict.fromkeys(name for step in spoiled for name in step.takes if name not in settled)
    lacking = {step.target for step in spoiled}
    return replace(
        plan,
        steps=(*kept, *map(_left_out, waiting)),
        # In the target's order, as of every part.
        missing=(*plan.missing, *(step.target for step in plan.steps if step.target and step.target in lacking)),
        partial=True,
    )


def _left_out(name: str) -> Step:
    return Step(
        kind=StepKind.DROP,
        source=name,
        target=None,
        rule="",
        reason=NOT_WHOLE,
        cost=Cost.LOSSY,
        evidence=Evidence.CHOSEN,
    )
