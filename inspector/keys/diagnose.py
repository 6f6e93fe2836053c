"""Why does this file not load into that model, and what would make it load?

By names and shapes, no torch imported; of the numbers, only what little a promise rests on (`checks/numbers.py`).
The answer is a report with a plan of typed steps; the plan is what `apply.py` applies, `code.py` writes down and
`exports/` writes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from inspector.architectures.types import Target
from inspector.checkpoint.nested import is_earlier_of_two, same_numbers
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.errors import UsageError
from inspector.findings import Finding, first_finding, run_checks
from inspector.gc_pause import without_collecting
from inspector.keys import sentences
from inspector.keys.checks import CHECKS, NUMBERS, REFUSALS
from inspector.keys.checks.entry import Context
from inspector.keys.cut_file import with_cut
from inspector.keys.gathering import PARTS_APART, gathered_sets, say_gathered
from inspector.keys.loading import access_of, loader_of, only_unpickles
from inspector.keys.older_files import made_good
from inspector.keys.partial import PARTS
from inspector.keys.placing.layouts import stated_elsewhere, writers_of
from inspector.keys.placing.tree import Leaf
from inspector.keys.plain_load import halved, partly_lost, plain_load, uncopied
from inspector.keys.plan import draft, group
from inspector.keys.refusals import MISFITS
from inspector.keys.report import KeyReport, RepairPlan, used_sources
from inspector.keys.rival_sets import PROMISES, fits_unasked, promise, reach, rivals_of, which_set
from inspector.keys.rules import RULES
from inspector.keys.rules.entry import Questions, Rule
from inspector.keys.rules.one_storage import of_one_storage

# A question with more options helps nobody.
_MOST_RIVALS = 8


@without_collecting()
def diagnose(
    checkpoint: Checkpoint,
    target: Target,
    *,
    state: StateDict | None = None,
    accept: Collection[str] = (),
    choose: Mapping[str, str] | None = None,
    partial: bool = False,
    names_alone: bool = False,
    rules: Sequence[Rule] = RULES,
) -> KeyReport:
    """Compare one state dict of the file with the target, and plan the repair.

    state: which state dict; None takes the file's weights, says so when there are others, and asks where another set of
    weights fits as well. accept: ids of rules that may be applied although they are lossy or no name confirms them.
    choose: option by question id. partial: places that nothing fills may stay at the model's initial value, if the rest
    is a part of it (`partial.py`); so may those of tensors that the file does not hold whole (`cut_file.py`).
    names_alone: whether it holds them whole does not matter. Raises UsageError for ids that mean nothing.
    A file that cannot be repaired is an answer: `refusal` says why and `plan` is None.
    """
    report = _diagnose_all(checkpoint, target, state, accept, choose, partial, rules)
    return report if names_alone else with_cut(checkpoint, report, target, partial=partial, rules=rules)


def _diagnose_all(
    checkpoint: Checkpoint,
    target: Target,
    state: StateDict | None,
    accept: Collection[str],
    choose: Mapping[str, str] | None,
    partial: bool,
    rules: Sequence[Rule],
) -> KeyReport:
    asked = [rule.id for rule in rules if rule.can_be_accepted]
    for rule_id in accept:
        if rule_id not in asked:
            raise UsageError(f'"{rule_id}" is nothing to accept.', hint=f"These are: {', '.join(asked)}.")
    candidates = [state] if state is not None else checkpoint.weight_sets
    if not candidates:
        return _nothing(checkpoint, target)
    reports: list[KeyReport] = []
    tried: list[Questions] = []
    fitting: list[StateDict] = []
    for candidate in candidates:
        if fitting and not sentences.could_be_meant(candidate, fitting[0]):
            continue
        questions = Questions(answers=dict(choose or {}))
        report = _diagnose_one(
            checkpoint,
            candidate,
            target,
            accept,
            questions,
            rules,
            partial,
            named=state is not None or is_earlier_of_two(candidate, candidates),
        )
        reports.append(report)
        tried.append(questions)
        if promise(report) == PROMISES[-1]:
            fitting.append(candidate)
        if len(fitting) > _MOST_RIVALS:
            break
    if state is None and not any(r.plan is not None and r.plan.complete for r in reports):
        together = _together(checkpoint, target, choose or {}, accept, rules, partial, tried)
        if together is not None and reach(together[0]) >= max(map(reach, reports)):
            _check_answers(choose or {}, tried)
            return sentences.with_other_states(together[0], checkpoint.state_dicts, together[1])
    candidates = [s for s in candidates if any(s.path == r.state_dict for r in reports)]
    # Beside weights that fit whole and unasked, others that only may fit raise no question.
    if any(fits_unasked(s, r) for s, r in zip(candidates, reports, strict=True)):
        kept = [
            i
            for i, (s, r) in enumerate(zip(candidates, reports, strict=True))
            if s.role is not StateRole.WEIGHTS or r.plan is None or not r.plan.ambiguities
        ]
        candidates, reports = [candidates[i] for i in kept], [reports[i] for i in kept]
        tried = [tried[i] for i in kept]
    # The likeliest weights among those that can be repaired best; when none can, these with their reason.
    best = max(range(len(reports)), key=lambda i: (PROMISES.index(promise(reports[i])), -i))
    rivals = [candidates[i] for i in rivals_of(candidates, reports, best)]
    if rivals:
        questions = Questions(answers=dict(choose or {}))
        answer = questions.ask(which_set(candidates[best], rivals))
        chosen = next((s for s in rivals if s.label == answer), candidates[best])
        named = answer is not None or is_earlier_of_two(chosen, candidates)
        reports.append(_diagnose_one(checkpoint, chosen, target, accept, questions, rules, partial, named=named))
        tried.append(questions)
        best = -1
    tried += _earlier(checkpoint, candidates, target, accept, choose or {}, rules, partial, tried)
    _check_answers(choose or {}, tried)
    if state is None:
        used = next(s for s in checkpoint.state_dicts if s.path == reports[best].state_dict)
        return sentences.with_other_states(reports[best], checkpoint.state_dicts, used)
    plan = reports[best].plan
    if plan is None or len(checkpoint.weight_sets) == 1:
        return reports[best]
    return replace(reports[best], plan=replace(plan, state_option=state.label))


def _together(
    checkpoint: Checkpoint,
    target: Target,
    choose: Mapping[str, str],
    accept: Collection[str],
    rules: Sequence[Rule],
    partial: bool,
    tried: list[Questions],
) -> tuple[KeyReport, StateDict] | None:
    """What sets that lie apart in the file make together, None where they make nothing of the target.

    Of two such wholes that go as far (checkpoints of two epochs) the user is asked which.
    """
    made = []
    for candidate, questions in gathered_sets(checkpoint, target, Questions(answers=choose)):
        made.append((_diagnose_one(checkpoint, candidate, target, accept, questions, rules, partial), candidate))
        tried.append(questions)
    made = [one for one in made if one[0].plan is not None]
    if not made:
        return None
    furthest = max(reach(report) for report, _ in made)
    report, candidate = next(one for one in made if reach(one[0]) == furthest)
    rivals = [s for r, s in made if s is not candidate and reach(r) == furthest and not same_numbers(s, candidate)]
    if rivals:
        questions = Questions(answers=choose)
        answer = questions.ask(which_set(candidate, rivals))
        candidate = next((s for s in rivals if s.label == answer), candidate)
        report = next(r for r, s in made if s is candidate)
        if questions.open and report.plan is not None:
            waiting = replace(report.plan, ambiguities=(*report.plan.ambiguities, *questions.open), complete=False)
            report = replace(report, plan=waiting, loads=False, says=questions.open[0].question)
        tried.append(questions)
    told = PARTS_APART.found(say_gathered(candidate), subjects=[".".join(p.path) for p in candidate.gathered])
    return replace(report, findings=(told, *report.findings)), candidate


def _earlier(
    checkpoint: Checkpoint,
    candidates: Sequence[StateDict],
    target: Target,
    accept: Collection[str],
    choose: Mapping[str, str],
    rules: Sequence[Rule],
    partial: bool,
    tried: Sequence[Questions],
) -> list[Questions]:
    """What is asked before the later answers are given, where an answer seems to be to nothing.

    One answer may settle what another was asked about: whoever gave both, one after the other, did nothing wrong.
    """
    asked = set().union(*(questions.asked for questions in tried))
    if all(key in asked for key in choose):
        return []
    earlier = []
    for number in range(len(choose)):
        for candidate in candidates:
            questions = Questions(answers=dict(list(choose.items())[:number]))
            _diagnose_one(checkpoint, candidate, target, accept, questions, rules, partial)
            # The next answer is to something that is asked now.
            questions.used |= {key for key in choose if key in questions.asked and key not in asked}
            earlier.append(questions)
    return earlier


def _check_answers(choose: Mapping[str, str], tried: Sequence[Questions]) -> None:
    """Raise UsageError for an answer that no question took."""
    asked = sorted(set().union(*(questions.asked for questions in tried)))
    for key, answer in choose.items():
        if any(key in questions.used for questions in tried):
            continue
        if key not in asked:
            hint = f"Open questions: {', '.join(asked)}." if asked else "Nothing is to be chosen for this file."
            raise UsageError(f'There is no question "{key}".', hint=hint)
        open_ = next((a for questions in tried for a in questions.open if f"{a.id}:".startswith(f"{key}:")), None)
        if open_ is not None:
            options = ", ".join(option for option, _ in open_.options)
            raise UsageError(f'"{answer}" is no option of "{key}".', hint=f"Options: {options}.")


def _diagnose_one(
    checkpoint: Checkpoint,
    state: StateDict,
    target: Target,
    accept: Collection[str],
    questions: Questions,
    rules: Sequence[Rule],
    partial: bool,
    *,
    named: bool = False,
) -> KeyReport:
    """named: the user said that this state dict is meant, so that its key is no doubt."""
    drafted = draft(
        [Leaf(t.name, t.shape) for t in state.tensors],
        target,
        rules=rules,
        questions=questions,
        ordered=state.ordered,
        stated=stated_elsewhere(checkpoint, state),
        writers=writers_of(checkpoint),
        around=() if named else state.path,
        shared=of_one_storage(state.tensors),
    )
    context = Context(
        checkpoint=checkpoint,
        state=state,
        target=target,
        draft=drafted,
        questions=questions,
        partial=partial and bool(drafted.missing),
    )
    refusal = _refusal(context)
    plan = None if refusal else _plan(context, accept)
    ours = {t.name: t.shape for t in state.tensors}
    theirs = {t.name: t.shape for t in target.tensors}
    agrees = {n: shape is None or ours[n] == shape for n, shape in theirs.items() if n in ours}
    matched = tuple(name for name, same in agrees.items() if same)
    missing = tuple(name for name in theirs if name not in ours)
    others = tuple(name for name in state.others if name not in theirs) if not state.is_module else ()
    unexpected = tuple(name for name in ours if name not in theirs) + others + tuple(key for key, _ in state.odd_keys)
    reshaped = tuple((name, ours[name] or (), theirs[name] or ()) for name, same in agrees.items() if not same)
    good = made_good(state, target, missing, reshaped)
    passes = bool(matched) and good is not None and not unexpected
    fits = passes and not refusal and not state.gathered
    dense = {t.name for t in target.tensors if not (t.dtype or "").startswith(("qint", "quint"))}
    copied = uncopied([tensor for tensor in state.tensors if tensor.name in dense]) if passes else ""
    loads = fits and not copied
    real = {t.name for t in target.tensors if not (t.dtype or "").startswith("complex")}
    lossy = halved([tensor for tensor in state.tensors if tensor.name in real])
    made = "; ".join(filter(None, (good.says, lossy))) if good is not None and fits else ""
    planned = context.knowing(plan=plan)
    doubts = run_checks(NUMBERS, planned)
    compared = (
        refusal.says
        if refusal
        else sentences.say(
            plan, target, loads=fits, rules=rules, shapes=ours, made_good=made, doubts=[x.says for x in doubts]
        )
    )
    plain = plain_load(checkpoint, state)
    asks = plan is not None and bool(plan.ambiguities)
    if refusal and passes and not copied and not plain.obstacles:
        compared = f"load_state_dict takes it without an error, and it is not what the model means. {refusal.says}"
    elif copied and not refusal:
        compared = f"All names fit {target.label}, and {copied}."
    return KeyReport(
        target=target.label,
        state_dict=state.path,
        matched=matched,
        missing=missing,
        unexpected=unexpected,
        reshaped=reshaped,
        loads=loads,
        strict=passes and not copied and not state.gathered,
        says=compared
        if refusal
        else sentences.with_plain_load(
            compared, plain, target, loads=loads and not asks, doubts=[x.says for x in doubts]
        ),
        compared=compared,
        made_good=made,
        findings=(*([refusal] if refusal else []), *doubts, *run_checks(CHECKS, planned)),
        plan=plan,
        refusal=refusal.says if refusal else "",
    )


def _refusal(context: Context) -> Finding | None:
    """Why this is no repair: a particular reason where a check knows better, else what the placing itself shows."""
    misfit = first_finding((*MISFITS, *PARTS), context)
    known = first_finding(REFUSALS, context.knowing(misfit=misfit.says) if misfit else context)
    return known or misfit


def _plan(context: Context, accept: Collection[str]) -> RepairPlan:
    checkpoint, state, drafted, questions = context.checkpoint, context.state, context.draft, context.questions
    uses = group(drafted, accept)
    needs_accept = tuple(dict.fromkeys(use.id for use in uses if not use.accepted))
    missing = tuple(place.name for place in drafted.missing)
    targets = [step.target for step in drafted.steps if step.target is not None]
    # What a strict load asks for, counted once more and not taken from the rules.
    settled = [*targets, *(missing if context.partial else ())]
    covers = len(set(settled)) == len(settled) and set(settled) == {t.name for t in context.target.tensors}
    sources = used_sources(drafted.steps)
    covers = covers and len(set(sources)) == len(sources) == len(state.tensors)
    whole = context.partial or not missing
    kind, files = loader_of(checkpoint, state)
    return RepairPlan(
        target=context.target.label,
        state_dict=state.path,
        steps=tuple(drafted.steps),
        rules=uses,
        ambiguities=questions.open,
        needs_accept=needs_accept,
        missing=missing,
        complete=covers and whole and not drafted.held and not questions.open and not needs_accept,
        format=kind,
        files=files,
        access=access_of(checkpoint, state),
        lost=len(partly_lost(checkpoint, state.tensors)) + sum(tensor.device == "meta" for tensor in state.tensors),
        is_module=state.is_module,
        unpickles=not kind and only_unpickles(checkpoint),
        versions=state.versions,
        others=() if state.is_module else state.others,
        odd_keys=tuple(key for key, _ in state.odd_keys),
        partial=context.partial,
        chosen=tuple((key, questions.answers[key]) for key in sorted(questions.used)),
        gathered=state.gathered,
    )


def _nothing(checkpoint: Checkpoint, target: Target) -> KeyReport:
    # What has the weights' names and shapes and is none of them: gradients, deltas, an optimizer's moments.
    other = next((s for s in checkpoint.state_dicts if s.role is StateRole.TRAINING and s.tensors), None)
    why = f" ({other.why})" if other is not None else ""
    says = f"{checkpoint.origin.name} holds no state dict{why}: there is nothing to load into {target.label}."
    return KeyReport(
        target=target.label,
        state_dict=(),
        matched=(),
        missing=tuple(t.name for t in target.tensors),
        unexpected=(),
        reshaped=(),
        loads=False,
        strict=False,
        says=says,
        findings=(),
        plan=None,
        refusal=says,
        compared=says,
    )
