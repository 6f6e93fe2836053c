"""This program on one case: asked without help first, then as a user who knows the truth would answer.

That user accepts what the corruption says may be accepted, and no more; before what nobody can repair, the user accepts
everything, and it must be refused all the same.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from benchmarks.keybench.damage import Answer, Corruption, Damaged
from benchmarks.keybench.numbers import checkpoint_with
from benchmarks.keybench.score import Outcome, judge
from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint
from inspector.errors import KeysDoNotFit, UsageError
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Ambiguity, KeyReport, RepairPlan, StepKind

# What a user who knows the truth of these files says when asked.
ANSWERS = {
    "index-shift": "shifted",
    "symmetric": "in-order",
    "same-order": "order",
    "rename": "as-placed",
    "rival": "as-placed",
    "mixture": "mix",
    "nested-numbers": "by-group",
    "moved-parts": "as-named",
}
MOST_ROUNDS = 12
# A finding that says what names and shapes cannot show.
TELLING = "cannot-tell"


def run_engine(corruption: Corruption, case: Damaged, target: Target) -> tuple[Outcome, Outcome]:
    """(asked without help, asked and answered). The second is what is scored; the first must not be silent either."""
    checkpoint = checkpoint_with(case.file)
    started = time.process_time()
    report = diagnose(checkpoint, target)
    seconds = time.process_time() - started
    alone = _outcome(checkpoint, report, target, seconds=seconds)
    last = answered(corruption, checkpoint, target, report, case)
    if last.report is report:
        return alone, alone
    return alone, replace(_outcome(checkpoint, last.report, target, seconds=seconds), asked=last.asked)


class Answered(NamedTuple):
    """The last report, what was asked until then, and what was said to it."""

    report: KeyReport
    asked: tuple[str, ...]
    accepted: tuple[str, ...]
    answers: dict[str, str]


def answered(
    corruption: Corruption, checkpoint: Checkpoint, target: Target, report: KeyReport, case: Damaged | None = None
) -> Answered:
    """Questions are answered until none is open. case: with its truth, for questions whose options are names."""
    asked: dict[str, None] = {}
    answers: dict[str, str] = {}
    accepted: tuple[str, ...] = ()
    known = ANSWERS | dict(corruption.answers)
    for _ in range(MOST_ROUNDS):
        plan = report.plan
        if plan is None or not (plan.ambiguities or plan.needs_accept):
            break
        asked |= dict.fromkeys((*(question.id for question in plan.ambiguities), *plan.needs_accept))
        everything = corruption.expects is Answer.REFUSE
        willing = [r for r in plan.needs_accept if everything or r in corruption.accept]
        before = (dict(answers), accepted)
        # One at a time: an answer can make another question go away.
        for question in plan.ambiguities:
            told = _told(corruption, checkpoint, question)
            said = known.get(question.id.partition(":")[0])
            if not told and said in dict(question.options) and question.id not in answers:
                told = {question.id: str(said)}
            if not told and case is not None:
                told = _true_option(corruption, checkpoint, target, question, ((*accepted, *willing), answers), case)
            if told and not told.items() <= answers.items():
                answers |= told
                break
        accepted = tuple(dict.fromkeys((*accepted, *willing)))
        if (answers, accepted) == before:
            break
        report = diagnose(checkpoint, target, accept=accepted, choose=answers)
    return Answered(report, tuple(asked), accepted, answers)


def _true_option(
    corruption: Corruption,
    checkpoint: Checkpoint,
    target: Target,
    question: Ambiguity,
    before: tuple[tuple[str, ...], dict[str, str]],
    case: Damaged,
) -> dict[str, str]:
    """The option that puts nothing wrong and most right, from a user who sees what each would do; for the first place
    alone where none holds of all. Nothing where no option is true, or where the user would not say.
    """
    if corruption.expects not in (Answer.REPAIR, Answer.PART):
        return {}
    for key in (question.id, *(question.at(place) for place in question.places[:1])):
        tried = []
        for option, _ in question.options:
            try:
                report = diagnose(checkpoint, target, accept=before[0], choose=before[1] | {key: option})
            except UsageError:
                continue
            outcome = _outcome(checkpoint, report, target, seconds=0.0)
            right, wrong, _ = judge(case, outcome, corruption.expects)
            tried.append((len(wrong), -right, len(tried), option))
        if tried and min(tried)[0] == 0 and key not in before[1]:
            return {key: min(tried)[3]}
    return {}


def _told(corruption: Corruption, checkpoint: Checkpoint, question: Ambiguity) -> dict[str, str]:
    """What is said of each place of a question, by the name of the tensor there."""
    say = corruption.at.get(question.id)
    names = {tensor.name for tensor in checkpoint.tensors}
    if say is None:
        return {}
    whole = {place: f"{place}.weight" if f"{place}.weight" in names else place for place in question.places}
    return {f"{question.id}:{place}": say(name) for place, name in whole.items()}


def _outcome(checkpoint: Checkpoint, report: KeyReport, target: Target, *, seconds: float) -> Outcome:
    plan = report.plan
    try:
        placed = {} if plan is None else apply_part(checkpoint, plan)
    except KeysDoNotFit:  # what only the numbers show is refused when they are read
        return Outcome(placed={}, strict=False, refused=True, seconds=seconds)
    return Outcome(
        placed=placed,
        strict=plan is not None and plan.complete,
        refused=plan is None,
        seconds=seconds,
        rules=len(plan.rules) if plan is not None else 0,
        told=any(TELLING in finding.id for finding in report.findings),
        evidence=plan.certificate if plan is not None else (),
        open=tuple(q.id for q in plan.ambiguities) + plan.needs_accept if plan is not None else (),
    )


def apply_part(checkpoint: Checkpoint, plan: RepairPlan) -> dict[str, Tensor]:
    """What the plan makes of the file's own tensors, complete or not.

    Without what is filled in, which is not of the file, and without what still waits to be accepted.
    """
    waiting = set(plan.needs_accept)
    steps = tuple(
        step for step in plan.steps if step.kind is not StepKind.FILL and waiting.isdisjoint((step.rule, *step.also))
    )
    part = replace(plan, steps=steps, ambiguities=(), needs_accept=(), missing=(), complete=True)
    return apply_plan(checkpoint, part)
