"""The diagnosis in words: one or two sentences for the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inspector.architectures.types import Target
from inspector.checkpoint.types import Shape, StateDict, StateRole
from inspector.findings import FindingKind, Severity
from inspector.keys.plain_load import PlainLoad
from inspector.keys.plan import by_operation_named, changes_by, listed
from inspector.keys.report import WHICH_STATE, Cost, Evidence, KeyReport, RepairPlan, RuleUse, Step, StepKind
from inspector.keys.rules.entry import Rule
from inspector.units import counted

#: What ends the answer about a file that fits.
NO_REPAIR = "no name or shape needs repair"
_LONGEST = 60  # characters of a target's name in a sentence
SEVERAL_STATE_DICTS = FindingKind("several-state-dicts", Severity.NOTICE, "Several sets of weights in one file")


def called(label: str) -> str:
    """A target in a sentence: "torchvision/vit" where its sizes make a line of their own, which stands beside it."""
    return label if len(label) <= _LONGEST else label.partition("?")[0]


def with_plain_load(compared: str, plain: PlainLoad, target: Target, *, loads: bool, doubts: Sequence[str] = ()) -> str:
    """The same answer, saying what the plain two lines meet before any name is compared.

    compared: what `say` said. doubts: as for `say`.
    """
    if not plain.obstacles:
        return compared
    why = "; ".join(obstacle.says for obstacle in plain.obstacles)
    if loads:
        total = counted(len(target.tensors), "tensor")
        return f"All {total} fit {called(target.label)} by name and shape, but a plain load fails: {why}.{_but(doubts)}"
    damage = [obstacle.says for obstacle in plain.obstacles if obstacle.severity is Severity.ERROR]
    return f"{compared} But {'; '.join(damage)}." if damage else compared


def say(
    plan: RepairPlan | None,
    target: Target,
    *,
    loads: bool,
    rules: Sequence[Rule],
    shapes: Mapping[str, Shape],
    made_good: str = "",
    doubts: Sequence[str] = (),
) -> str:
    """The whole answer in one or two sentences.

    shapes: the file's. made_good: as of a `KeyReport`. doubts: what numbers say against it.
    """
    total = len(target.tensors)
    unchecked = " Shapes were not checked: the target is a list of names." if names_only(target) else ""
    doubt = _but(doubts)
    if loads and not (plan is not None and plan.ambiguities):
        lacks = len(plan.missing) + sum(s.kind is StepKind.FILL for s in plan.steps) if plan is not None else 0
        have = "All" if not lacks else f"{total - lacks:,} of"
        idle = not doubts and not (plan is not None and plan.lost)
        # Of names and shapes only: what the numbers are is not seen here.
        rest = made_good or (NO_REPAIR if idle and not unchecked else "no name needs repair" if idle else "")
        rest = f" as they are; {rest}." if rest else " by name and shape."
        return f"{have} {counted(total, 'tensor')} fit {called(target.label)}{rest}{unchecked}{doubt}"
    if plan is None:
        return f"The file does not fit {called(target.label)}."
    if plan.ambiguities:
        more = f" ({counted(len(plan.ambiguities), 'question')} open)" if len(plan.ambiguities) > 1 else ""
        return f"{plan.ambiguities[0].question}{more}"
    placed = sum(1 for s in plan.steps if s.source is not None and s.target is not None)
    if plan.missing and not plan.partial:
        return (
            f"{placed:,} of {counted(total, 'tensor')} of {called(target.label)} are in the file; "
            f"{len(plan.missing):,} "
            f"{'is' if len(plan.missing) == 1 else 'are'} missing, {plan.missing[0]} first.{unchecked}"
        )
    once = _once(plan, rules, shapes)
    if plan.needs_accept:
        which = _and([f'"{rule}"' for rule in plan.needs_accept])
        what = "Lossy" if _costs(plan) else "No name confirms this"
        return f"{target.label} can be filled{once}. {what}: {which} must be accepted first.{unchecked}{doubt}"
    lossy = [step for step in plan.steps if step.cost is Cost.LOSSY]
    accepted = any(not step.declared or step.evidence is Evidence.CHOSEN for step in lossy)
    cost = "Lossy, as accepted." if accepted else "Exact to rounding." if lossy else "Lossless."
    filled = sum(1 for s in plan.steps if s.kind is StepKind.FILL) + len(plan.missing)
    have = "All" if not filled else f"{total - filled:,} of"
    if plan.lost:
        # What the file has not is lost before any rule: nothing is lossless then.
        by = "By name" if names_only(target) else "By name and shape"
        broken = f"{plan.lost:,} of the file's tensors {'is' if plan.lost == 1 else 'are'} not whole"
        fit = f"{by} {have.lower()} {counted(total, 'tensor')} fit{once}"
        return f"{fit}, and {broken}.{_left(plan)}{unchecked}{doubt}"
    return f"{have} {counted(total, 'tensor')} fit{once}. {cost}{_left(plan)}{unchecked}{doubt}"


def _but(doubts: Sequence[str]) -> str:
    return f" But: {doubts[0]}" if doubts else ""


def say_whole_part(plan: RepairPlan, target: Target, *, rules: Sequence[Rule], shapes: Mapping[str, Shape]) -> str:
    """Of a file cut short, what is repaired of it. rules, shapes: as for `say`."""
    placed = sum(1 for s in plan.steps if s.source is not None and s.target is not None)
    verb = "is" if placed == 1 else "are"
    return (
        f"{placed:,} of {counted(len(target.tensors), 'tensor')} {verb} whole in the file and "
        f"{'fits' if placed == 1 else 'fit'}{_once(plan, rules, shapes) or ' by name and shape'}.{_left(plan)}"
    )


def _once(plan: RepairPlan, rules: Sequence[Rule], shapes: Mapping[str, Shape]) -> str:
    """' once "module." is dropped'; "" where nothing is to be done."""
    doings = [_doing(use, plan, rules, shapes) for use in plan.rules]
    if plan.gathered:
        doings.insert(0, f"{counted(len(plan.gathered), 'set')} that lie apart in the file are put together")
    if plan.others:
        doings.append(f"{say_others(plan)} {'is' if len(plan.others) == 1 else 'are'} left out")
    if plan.odd_keys:
        doings.append(f"{say_odd_keys(plan)} {'is' if len(plan.odd_keys) == 1 else 'are'} left out")
    return f" once {_and(doings)}" if doings else ""


def _left(plan: RepairPlan) -> str:
    """What a partial repair leaves as the model's own code made it."""
    if not plan.partial:
        return ""
    verb = "stays" if len(plan.missing) == 1 else "stay"
    return f" {counted(len(plan.missing), 'tensor')} {verb} at the initial value, {plan.missing[0]} first."


def _costs(plan: RepairPlan) -> bool:
    """Whether anything that waits to be accepted loses something."""
    return any(use.cost is Cost.LOSSY for use in plan.rules if not use.accepted)


def _doing(use: RuleUse, plan: RepairPlan, rules: Sequence[Rule], shapes: Mapping[str, Shape]) -> str:
    rule = next(rule for rule in rules if rule.id == use.id)
    parameters = dict(use.parameters)
    adds = "add" in parameters
    join = "joined" if parameters.get("way") == "join" else "split"
    return rule.done.format(
        segment=parameters.get("add" if adds else "drop", ""),
        stem=parameters.get("stem", ""),
        verb=join if "way" in parameters else "added" if adds else "dropped",
        tensors=counted(use.count, "tensor"),
        are="is" if use.count == 1 else "are",
        counters=_counters(rule, plan.steps),
        classes=_classes(rule, plan.steps, shapes),
    )


def _classes(rule: Rule, steps: Sequence[Step], shapes: Mapping[str, Shape]) -> str:
    """' (3 classes in the file, 2 in the target)', in words where heads differ in that."""
    if not rule.replaces_head:
        return ""
    gone = [shapes.get(s.source or "", ()) for s in steps if s.rule == rule.id]
    ours = {shape[0] for shape in gone if shape}
    theirs = {s.shape[0] for s in steps if s.rule == rule.id and s.kind is StepKind.FILL and s.shape}
    if len(ours) != 1 or len(theirs) != 1:
        return ", made for another number of classes,"
    (here,), (there,) = ours, theirs
    return f" ({counted(here, 'class', 'classes')} in the file, {there:,} in the target)"


def _counters(rule: Rule, steps: Sequence[Step]) -> str:
    """'total_ops is left out and num_batches_tracked is filled in'."""
    parts = []
    for operation, names in by_operation_named(rule, changes_by(rule, steps)):
        done = "left out" if StepKind.DROP in operation.kinds else "filled in"
        parts.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} {done}")
    return " and ".join(parts)


def say_others(plan: RepairPlan) -> str:
    """The values of the state dict that are no tensors: how many, and the first."""
    more = f" and {len(plan.others) - 3:,} more" if len(plan.others) > 3 else ""
    kind = "value that is no tensor" if len(plan.others) == 1 else "values that are no tensors"
    return f"{len(plan.others):,} {kind} ({', '.join(plan.others[:3])}{more})"


def say_odd_keys(plan: RepairPlan) -> str:
    """The keys of the state dict that are no text: how many, and the first."""
    more = f" and {len(plan.odd_keys) - 3:,} more" if len(plan.odd_keys) > 3 else ""
    kind = "key that is no text" if len(plan.odd_keys) == 1 else "keys that are no text"
    return f"{len(plan.odd_keys):,} {kind} ({', '.join(key[:40] for key in plan.odd_keys[:3])}{more})"


def _and(parts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(parts))
    if len(unique) > 4:
        unique = [*unique[:3], f"{len(unique) - 3} more changes are made"]
    return ", ".join(unique[:-1]) + (" and " if len(unique) > 1 else "") + unique[-1]


def names_only(target: Target) -> bool:
    """Whether the target is a list of names."""
    return any(t.shape is None for t in target.tensors)


def could_be_meant(other: StateDict, used: StateDict) -> bool:
    """Named as weights, or at least a tenth as many tensors: a metric that a callback keeps is no model."""
    named = other.role in (StateRole.WEIGHTS, StateRole.EMA)
    return bool(other.tensors) and (
        named or (other.role is StateRole.OTHER and 10 * len(other.tensors) >= len(used.tensors))
    )


def without_questions(report: KeyReport) -> str:
    """The answer where no question is open; else what it says beside the first of them, "" for nothing: whoever lists
    the questions has said that one."""
    asked = report.plan.ambiguities if report.plan is not None else ()
    if not asked or not report.says.startswith(asked[0].question):
        return report.says
    # What follows the question is about the file itself.
    _, _, rest = report.says.removeprefix(asked[0].question).partition(" But ")
    return f"{rest[:1].upper()}{rest[1:]}"


def with_other_states(report: KeyReport, states: Sequence[StateDict], used: StateDict) -> KeyReport:
    """The same report, saying which other state dicts of the file could have been meant than the used one."""
    taken = {used.path} if not used.gathered else {part.path for part in used.gathered}
    others = [s for s in states if s.path not in taken and could_be_meant(s, used)]
    asked = report.plan.ambiguities if report.plan is not None else ()
    if not others or any(question.id == WHICH_STATE for question in asked):
        return report  # None was taken where it is asked which.
    names = ", ".join(f"{s.label} ({s.role})" for s in others)
    finding = SEVERAL_STATE_DICTS.found(
        f"The file holds {len(others) + 1} sets of weights; {used.label} ({used.role}) was taken, not {names}.",
        subjects=[s.label for s in others],
        remedy="Name the other one if that is the one you want.",
    )
    return replace(report, findings=(*report.findings, finding))
