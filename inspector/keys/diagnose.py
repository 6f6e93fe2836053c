"""Why does this file not load into that model, and what would make it load?

By names and shapes alone: no tensor is read, no torch imported. The answer is a report with a plan of typed steps; the
plan is what `apply.py` applies, `code.py` writes down and `exports/` writes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.checkpoint.values import ValueKind
from inspector.errors import UsageError
from inspector.keys import sentences
from inspector.keys.keytree import Leaf
from inspector.keys.plan import Draft, draft, group
from inspector.keys.refusals import refuse
from inspector.keys.report import Cost, KeyReport, RepairPlan
from inspector.keys.rules import RULES
from inspector.keys.rules.entry import Questions, Rule

# The role of state dicts that could be a model's weights, the likeliest first.
_ROLES = (StateRole.WEIGHTS, StateRole.EMA, StateRole.OTHER)


def diagnose(
    checkpoint: Checkpoint,
    target: Target,
    *,
    state: StateDict | None = None,
    accept: Collection[str] = (),
    choose: Mapping[str, str] | None = None,
    rules: Sequence[Rule] = RULES,
) -> KeyReport:
    """Compare one state dict of the file with the target, and plan the repair.

    state: which state dict; None takes the file's weights and says so when there are others. accept: ids of lossy
    rules that may be applied. choose: option by question id. Raises UsageError for ids that mean nothing.
    A file that cannot be repaired is an answer: `refusal` says why and `plan` is None.
    """
    lossy = [rule.id for rule in rules if rule.cost is Cost.LOSSY and rule.steps is not None]
    for rule_id in accept:
        if rule_id not in lossy:
            raise UsageError(f'"{rule_id}" is nothing to accept.', hint=f"These are: {', '.join(lossy)}.")
    candidates = [state] if state is not None else _candidates(checkpoint)
    if not candidates:
        return _nothing(checkpoint, target)
    reports = []
    asked: set[str] = set()
    for candidate in candidates:
        questions = Questions(answers=dict(choose or {}))
        report = _diagnose_one(checkpoint, candidate, target, accept, questions, rules)
        _check_answers(questions, report)
        asked |= questions.asked
        reports.append(report)
        if report.plan is not None:
            break
    # The first that can be repaired; when none can, the likeliest weights with their reason.
    report = next((r for r in reports if r.plan is not None), reports[0])
    for question in choose or {}:
        if question not in asked:
            hint = f"Open questions: {', '.join(sorted(asked))}." if asked else "Nothing is to be chosen for this file."
            raise UsageError(f'There is no question "{question}".', hint=hint)
    if state is None:
        return sentences.with_other_states(report, checkpoint.state_dicts)
    return report


def _candidates(checkpoint: Checkpoint) -> list[StateDict]:
    found = [s for role in _ROLES for s in checkpoint.state_dicts if s.role is role and s.tensors]
    first = checkpoint.weights
    return sorted(found, key=lambda s: s is not first)


def _check_answers(questions: Questions, report: KeyReport) -> None:
    for ambiguity in questions.open:
        answer = questions.answers.get(ambiguity.id)
        if answer is not None:
            options = ", ".join(option for option, _ in ambiguity.options)
            raise UsageError(f'"{answer}" is no option of "{ambiguity.id}".', hint=f"Options: {options}.")


def _diagnose_one(
    checkpoint: Checkpoint,
    state: StateDict,
    target: Target,
    accept: Collection[str],
    questions: Questions,
    rules: Sequence[Rule],
) -> KeyReport:
    leaves = [Leaf(t.name, t.shape) for t in state.tensors]
    made = draft(leaves, target, rules=rules, questions=questions)
    refusal = refuse(made, target, len(leaves))
    plan = None if refusal else _plan(checkpoint, state, target, made, accept, questions, rules)
    ours = {leaf.name: leaf.shape for leaf in leaves}
    theirs = {t.name: t.shape for t in target.tensors}
    agrees = {n: shape is None or ours[n] == shape for n, shape in theirs.items() if n in ours}
    matched = tuple(name for name, same in agrees.items() if same)
    missing = tuple(name for name in theirs if name not in ours)
    unexpected = tuple(name for name in ours if name not in theirs)
    reshaped = tuple((name, ours[name] or (), theirs[name] or ()) for name, same in agrees.items() if not same)
    loads = bool(theirs) and not (missing or unexpected or reshaped)
    return KeyReport(
        target=target.label,
        state_dict=state.path,
        matched=matched,
        missing=missing,
        unexpected=unexpected,
        reshaped=reshaped,
        loads=loads,
        says=refusal or sentences.say(plan, target, loads=loads, rules=rules),
        findings=sentences.find(plan, refusal, state, target),
        plan=plan,
        refusal=refusal,
    )


def _plan(
    checkpoint: Checkpoint,
    state: StateDict,
    target: Target,
    made: Draft,
    accept: Collection[str],
    questions: Questions,
    rules: Sequence[Rule],
) -> RepairPlan:
    uses = group(made, rules, accept)
    needs_accept = tuple(dict.fromkeys(use.id for use in uses if not use.accepted))
    missing = tuple(place.name for place in made.missing)
    targets = [step.target for step in made.steps if step.target is not None]
    # What a strict load asks for, counted once more and not taken from the rules.
    covers = len(set(targets)) == len(targets) and set(targets) == {t.name for t in target.tensors}
    complete = covers and not missing and not made.held and not questions.open and not needs_accept
    return RepairPlan(
        target=target.label,
        state_dict=state.path,
        steps=tuple(made.steps),
        rules=uses,
        ambiguities=tuple(questions.open),
        needs_accept=needs_accept,
        missing=missing,
        complete=complete,
        format=checkpoint.format,
        access=_access(checkpoint, state),
        is_module=state.is_module,
        versions=state.versions,
    )


def _access(checkpoint: Checkpoint, state: StateDict) -> tuple[str | int, ...]:
    """The path to the state dict as Python indexes it: list positions are numbers."""
    found: list[str | int] = []
    value = checkpoint.root
    for key in state.path:
        is_list = value.kind is ValueKind.SEQUENCE
        found.append(int(key) if is_list and key.isdigit() else key)
        value = next((child for label, child in value.children if label == key), value)
    return tuple(found)


def _nothing(checkpoint: Checkpoint, target: Target) -> KeyReport:
    says = f"{checkpoint.origin.name} holds no state dict: there is nothing to load into {target.label}."
    return KeyReport(
        target=target.label,
        state_dict=(),
        matched=(),
        missing=tuple(t.name for t in target.tensors),
        unexpected=(),
        reshaped=(),
        loads=False,
        says=says,
        findings=(),
        plan=None,
        refusal=says,
    )
