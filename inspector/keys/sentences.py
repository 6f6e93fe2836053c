"""The diagnosis in words: one sentence for the whole, one finding per rule, question and gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.types import Target
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import StateDict, StateRole
from inspector.findings import Finding, Severity
from inspector.keys.plan import by_operation_named, changes_by, listed
from inspector.keys.report import Cost, KeyReport, RepairPlan, RuleUse, Step, StepKind
from inspector.keys.rules.entry import Rule
from inspector.units import counted


def say(plan: RepairPlan | None, target: Target, *, loads: bool, rules: Sequence[Rule]) -> str:
    """The whole answer in one or two sentences."""
    total = len(target.tensors)
    unchecked = " Shapes were not checked: the target is a list of names." if _names_only(target) else ""
    if loads and not (plan is not None and plan.ambiguities):
        return f"All {counted(total, 'tensor')} fit {target.label} as they are; nothing needs doing.{unchecked}"
    if plan is None:
        return f"The file does not fit {target.label}."
    if plan.ambiguities:
        more = f" ({counted(len(plan.ambiguities), 'question')} open)" if len(plan.ambiguities) > 1 else ""
        return f"{plan.ambiguities[0].question}{more}"
    placed = sum(1 for s in plan.steps if s.source is not None and s.target is not None)
    if plan.missing and not plan.partial:
        return (
            f"{placed:,} of {counted(total, 'tensor')} of {target.label} are in the file; {len(plan.missing):,} are "
            f"missing, {plan.missing[0]} first.{unchecked}"
        )
    doings = [_doing(use, plan, rules) for use in plan.rules]
    if plan.others:
        doings.append(f"{_others(plan)} {'is' if len(plan.others) == 1 else 'are'} left out")
    once = f" once {_and(doings)}" if doings else ""
    if plan.needs_accept:
        which = _and([f'"{rule}"' for rule in plan.needs_accept])
        what = "Lossy" if _costs(plan) else "No name confirms this"
        return f"{target.label} can be filled{once}. {what}: {which} must be accepted first.{unchecked}"
    cost = "Lossy, as accepted." if any(use.cost is Cost.LOSSY for use in plan.rules) else "Lossless."
    filled = sum(1 for s in plan.steps if s.kind is StepKind.FILL) + len(plan.missing)
    have = "All" if not filled else f"{total - filled:,} of"
    return f"{have} {counted(total, 'tensor')} fit{once}. {cost}{_left(plan)}{unchecked}"


def _left(plan: RepairPlan) -> str:
    """What a partial repair leaves as the model's own code made it."""
    if not plan.partial:
        return ""
    verb = "stays" if len(plan.missing) == 1 else "stay"
    return f" {counted(len(plan.missing), 'tensor')} {verb} at the initial value, {plan.missing[0]} first."


def _costs(plan: RepairPlan) -> bool:
    """Whether anything that waits to be accepted loses something."""
    return any(use.cost is Cost.LOSSY for use in plan.rules if not use.accepted)


def _doing(use: RuleUse, plan: RepairPlan, rules: Sequence[Rule]) -> str:
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
    )


def _counters(rule: Rule, steps: Sequence[Step]) -> str:
    """'total_ops is left out and num_batches_tracked is filled in'."""
    parts = []
    for operation, names in by_operation_named(rule, changes_by(rule, steps)):
        done = "left out" if StepKind.DROP in operation.kinds else "filled in"
        parts.append(f"{listed(names)} {'is' if len(names) == 1 else 'are'} {done}")
    return " and ".join(parts)


def _others(plan: RepairPlan) -> str:
    more = f" and {len(plan.others) - 3:,} more" if len(plan.others) > 3 else ""
    kind = "value that is no tensor" if len(plan.others) == 1 else "values that are no tensors"
    return f"{len(plan.others):,} {kind} ({', '.join(plan.others[:3])}{more})"


def _and(parts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(parts))
    if len(unique) > 4:
        unique = [*unique[:3], f"{len(unique) - 3} more changes are made"]
    return ", ".join(unique[:-1]) + (" and " if len(unique) > 1 else "") + unique[-1]


def _names_only(target: Target) -> bool:
    return any(t.shape is None for t in target.tensors)


def find(
    plan: RepairPlan | None, refusal: str, state: StateDict, target: Target, rules: Sequence[Rule]
) -> tuple[Finding, ...]:
    """Everything noticed, as findings: rules by their ids, then questions, gaps and remarks."""
    found: list[Finding] = []
    if refusal:
        found.append(
            Finding(
                id="no-fit",
                severity=Severity.ERROR,
                says=refusal,
                remedy="Choose another target, or a file of this network.",
            )
        )
    if plan is not None:
        by_id = {rule.id: rule for rule in rules}
        found.extend(_of_rule(by_id[use.id], use, plan) for use in plan.rules)
        if plan.others:
            found.append(
                Finding(
                    id="not-tensors",
                    severity=Severity.NOTICE,
                    says=f"Among the weights lie {_others(plan)}; a strict load refuses them.",
                    subjects=plan.others[:50],
                    remedy="The repair plan leaves them out.",
                )
            )
        for ambiguity in plan.ambiguities:
            options = " or ".join(f"{ambiguity.id}={option}" for option, _ in ambiguity.options)
            found.append(
                Finding(
                    id="ambiguous",
                    severity=Severity.ERROR,
                    says=ambiguity.question,
                    remedy=f"Choose {options}.",
                    evidence=tuple(ambiguity.options),
                )
            )
        if plan.missing and not plan.ambiguities:
            found.append(_missing(plan, target))
    if state.path:
        found.append(
            Finding(
                id="wrapper-dict",
                severity=Severity.INFO,
                says=f"The weights lie under {state.label}, not at the top of the file: take them out before loading.",
                subjects=(state.label,),
            )
        )
    if _names_only(target):
        found.append(
            Finding(
                id="shapes-not-checked",
                severity=Severity.NOTICE,
                says="The target is a list of names without shapes: only names were compared.",
            )
        )
    found.extend(_dtypes(state, target))
    return tuple(found)


def _missing(plan: RepairPlan, target: Target) -> Finding:
    says = f"{len(plan.missing):,} of {counted(len(target.tensors), 'tensor')} are not in the file"
    if plan.partial:
        return Finding(
            id="missing-tensors",
            severity=Severity.WARNING,
            says=f"{says} and stay at the model's initial value.",
            subjects=plan.missing,
            remedy="Load with strict=False, as the exported code does, and train them before use.",
        )
    return Finding(
        id="missing-tensors",
        severity=Severity.ERROR,
        says=f"{says}.",
        subjects=plan.missing,
        remedy=(
            "The file holds a part of this network only, or belongs to another. A partial repair (--partial) leaves "
            "them at their initial value."
        ),
    )


def _of_rule(rule: Rule, use: RuleUse, plan: RepairPlan) -> Finding:
    lossy = use.cost is Cost.LOSSY
    steps = [s for s in plan.steps if s.rule == use.id or use.id in s.also]
    remedy = f"Accept {use.id} to go on." if not use.accepted else "The repair plan does this."
    start = use.says[:1].upper() + use.says[1:]
    return rule.kind.found(
        f"{start}: {counted(use.count, 'tensor')}, {'lossy' if lossy else 'lossless'}.",
        subjects=(s.source or s.target or "" for s in steps[:50]),
        evidence=(("tensors", use.count), *((before, after) for before, after in use.examples)),
        remedy=remedy,
    )


def _dtypes(state: StateDict, target: Target) -> list[Finding]:
    wanted = {t.dtype for t in target.tensors if t.dtype and (d := find_dtype(t.dtype)) and d.floating}
    stored: dict[str, int] = {}
    for tensor in state.tensors:
        dtype = find_dtype(tensor.dtype)
        if dtype is not None and dtype.floating and tensor.dtype not in wanted:
            stored[tensor.dtype] = stored.get(tensor.dtype, 0) + 1
    if not wanted or not stored:
        return []
    kinds = ", ".join(f"{counted(n, 'tensor')} as {name}" for name, n in stored.items())
    return [
        Finding(
            id="dtype-differs",
            severity=Severity.NOTICE,
            says=f"The file stores {kinds}; the target computes in {', '.join(sorted(wanted))}: loading casts.",
            remedy="The export keeps the stored type unless another is asked for.",
        )
    ]


def could_be_meant(other: StateDict, used: StateDict) -> bool:
    """Named as weights, or at least a tenth as many tensors: a metric that a callback keeps is no model."""
    named = other.role in (StateRole.WEIGHTS, StateRole.EMA)
    return bool(other.tensors) and (
        named or (other.role is StateRole.OTHER and 10 * len(other.tensors) >= len(used.tensors))
    )


def with_other_states(report: KeyReport, states: Sequence[StateDict]) -> KeyReport:
    """The same report, saying which other state dicts of the file could have been meant."""
    used = next((s for s in states if s.path == report.state_dict), None)
    if used is None:
        return report
    others = [s for s in states if s is not used and could_be_meant(s, used)]
    if not others:
        return report
    names = ", ".join(f"{s.label} ({s.role})" for s in others)
    found = Finding(
        id="several-state-dicts",
        severity=Severity.NOTICE,
        says=f"The file holds {len(others) + 1} sets of weights; {used.label} ({used.role}) was taken, not {names}.",
        subjects=tuple(s.label for s in others),
        remedy="Name the other one if that is the one you want.",
    )
    return replace(report, findings=(*report.findings, found))
