"""At which learning rate a training would go on, and whether optimizer and schedule agree about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject
from inspector.health.training.optimizers import Group, Optimizer
from inspector.health.training.schedules import Schedule
from inspector.units import counted

RESUMING = FindingKind("resuming", Severity.INFO, "The learning rate at which a training would resume")
RATE_ZERO = FindingKind("learning-rate-zero", Severity.NOTICE, "A group of the optimizer has a learning rate of zero")
RATE_INVALID = FindingKind("learning-rate-invalid", Severity.ERROR, "A learning rate is negative, infinite or NaN")
RATES_DISAGREE = FindingKind(
    "learning-rates-disagree",
    Severity.NOTICE,
    "Optimizer and schedule disagree about the learning rate",
    also=(Severity.WARNING,),
)
SCHEDULE_OVER = FindingKind("schedule-over", Severity.NOTICE, "The learning-rate schedule has come to its end")

_SHOWN = 4
_EQUAL = 1e-5  # A learning rate in a float32 tensor beside one in Python.


def _find(subject: Subject) -> Iterator[Finding]:
    training = subject.training
    with_rates = [one for one in training.optimizers if any(group.lr is not None for group in one.groups)]
    if with_rates:
        yield _resuming(with_rates, training.schedules)
    yield from _zero(with_rates)
    yield from _invalid(with_rates)
    yield from _disagreeing(with_rates, training.schedules)
    yield from _bases(with_rates, training.schedules)
    yield from _over(training.schedules)


def _resuming(optimizers: Sequence[Optimizer], schedules: Sequence[Schedule]) -> Finding:
    parts = [f"{_rates(one.groups)} ({one.called}{_steps(one)})" for one in optimizers[:_SHOWN]]
    more = f" and {len(optimizers) - _SHOWN:,} more optimizers" if len(optimizers) > _SHOWN else ""
    plans = [f"{one.called} has made {counted(int(one.steps), 'step')}" for one in schedules if one.steps is not None]
    first = next(group.lr for group in optimizers[0].groups if group.lr is not None)
    return RESUMING.found(
        f"Resuming now would train at lr {'; '.join(parts)}{more}."
        + (f" {'; '.join(plans[:_SHOWN])}." if plans else ""),
        subjects=tuple(one.label for one in optimizers[:_SHOWN]),
        evidence=(("lr", first), ("optimizers", len(optimizers)), ("schedules", len(schedules))),
    )


def _rates(groups: Sequence[Group]) -> str:
    """ "0.1", or "0.1 for 60 parameters, 0.01 for 2"."""
    counts: Counter[float] = Counter()
    for group in groups:
        if group.lr is not None:
            counts[group.lr] += len(group.keys)
    if len(counts) == 1:
        return f"{next(iter(counts)):.6g}"
    shown = ", ".join(f"{lr:.6g} for {counted(n, 'parameter')}" for lr, n in list(counts.items())[:_SHOWN])
    return shown + (f" and {len(counts) - _SHOWN:,} more rates" if len(counts) > _SHOWN else "")


def _steps(optimizer: Optimizer) -> str:
    most = optimizer.most_steps
    return "" if most is None else f", {counted(round(most), 'step')} done"


def _zero(optimizers: Sequence[Optimizer]) -> Iterator[Finding]:
    groups = [group for one in optimizers for group in one.groups]
    zero = [group for group in groups if group.lr == 0]
    if zero:
        entries = sum(len(group.keys) for group in zero)
        parameters = counted(entries, "parameter")
        yield RATE_ZERO.found(
            f"{counted(len(zero), 'group')} of {len(groups):,} with {parameters} would train at lr 0.",
            subjects=tuple(" / ".join(group.path) for group in zero[:_SHOWN]),
            evidence=(("groups", len(zero)), ("of", len(groups)), ("parameters", entries)),
            remedy="A schedule that has come to its end, or the first step of a warm-up, leaves it so. To go on "
            "training, set lr in every group after load_state_dict, and make a new schedule.",
        )


def _invalid(optimizers: Sequence[Optimizer]) -> Iterator[Finding]:
    groups = [
        group
        for one in optimizers
        for group in one.groups
        if group.lr is not None and (group.lr < 0 or not math.isfinite(group.lr))
    ]
    if groups:
        yield RATE_INVALID.found(
            f"{counted(len(groups), 'group')} would train at lr {groups[0].lr:.6g}.",
            subjects=tuple(" / ".join(group.path) for group in groups[:_SHOWN]),
            evidence=(("groups", len(groups)), ("lr", groups[0].lr or 0.0)),
            remedy="torch checks lr when an optimizer is made and not when it is loaded: set it in every group.",
        )


def _disagreeing(optimizers: Sequence[Optimizer], schedules: Sequence[Schedule]) -> Iterator[Finding]:
    """Only of one optimizer with one schedule: with more of either, who set what last is not in the file."""
    if len(optimizers) != 1 or len(schedules) != 1 or schedules[0].rates is None:
        return
    optimizer, schedule = optimizers[0], schedules[0]
    rates = schedule.rates or ()
    if len(rates) != len(optimizer.groups):
        yield RATES_DISAGREE.found(
            f"{schedule.called} keeps {counted(len(rates), 'learning rate')}, and {optimizer.called} has "
            f"{counted(len(optimizer.groups), 'group')}.",
            subjects=(schedule.label, optimizer.label),
            evidence=(("rates", len(rates)), ("groups", len(optimizer.groups))),
            remedy="A group that was added after the schedule was made has none. Otherwise they are of two runs.",
        )
        return
    pairs = [(group, rate) for group, rate in zip(optimizer.groups, rates, strict=True) if group.lr is not None]
    wrong = [(group, rate) for group, rate in pairs if not math.isclose(group.lr or 0.0, rate, rel_tol=_EQUAL)]
    if not wrong:
        return
    # Where every group stands at what it began with, nobody set another rate by hand: the optimizer is a new one.
    reset = (
        bool(schedule.steps) and all(group.lr == group.initial_lr for group, _ in pairs) and len(wrong) == len(pairs)
    )
    group, rate = wrong[0]
    yield RATES_DISAGREE.found(
        f"{schedule.called} set lr {rate:.6g} last, and {optimizer.called} would train at {group.lr:.6g}"
        + (f", where it began ({counted(len(wrong), 'group')})." if reset else f" ({counted(len(wrong), 'group')})."),
        severity=Severity.WARNING if reset else Severity.NOTICE,
        subjects=(schedule.label, optimizer.label),
        evidence=(("schedule", rate), ("optimizer", group.lr or 0.0), ("groups", len(wrong)), ("threshold", _EQUAL)),
        remedy="Most schedules go on from what the optimizer has, so that all later rates are off by the same factor: "
        "set lr to what the schedule says. A rate that a script sets by hand between steps is harmless.",
    )


def _over(schedules: Sequence[Schedule]) -> Iterator[Finding]:
    for one in schedules:
        if one.length is None or one.steps is None or not one.length or one.steps < one.length:
            continue
        fails = one.kind == "OneCycleLR"
        yield SCHEDULE_OVER.found(
            f"{one.called} has made {one.steps:,.0f} of its {one.length:,.0f} steps.",
            subjects=(one.label,),
            evidence=(("steps", one.steps), ("length", one.length)),
            remedy="A finished training. To go on, make a new schedule: "
            + ("its next step raises an error." if fails else "with its next steps the learning rate rises again."),
        )


def _bases(optimizers: Sequence[Optimizer], schedules: Sequence[Schedule]) -> Iterator[Finding]:
    """A schedule copies each group's initial_lr when it is made (torch/optim/lr_scheduler.py, _LRScheduler)."""
    for schedule in schedules if len(optimizers) == 1 else ():
        begun = [group.initial_lr for group in optimizers[0].groups]
        # A cyclic one has bounds of its own.
        if schedule.base is None or schedule.kind == "CyclicLR" or len(begun) != len(schedule.base):
            continue
        pairs = [(a, b) for a, b in zip(begun, schedule.base, strict=True) if a is not None]
        apart = [(a, b) for a, b in pairs if not math.isclose(a, b, rel_tol=_EQUAL, abs_tol=0)]
        if apart:
            initial, base = apart[0]
            yield RATES_DISAGREE.found(
                f"{schedule.called} begins from {base:g} (base_lrs), and {optimizers[0].called} from {initial:g} "
                f"(initial_lr), in {counted(len(apart), 'group')} of {len(begun):,}.",
                severity=Severity.NOTICE,
                subjects=(schedule.label, optimizers[0].label),
                evidence=(("base", base), ("initial", initial), ("groups", len(apart))),
                remedy="One was changed by hand, or they are of two trainings: the schedule's next step goes by it.",
            )


CHECK = Check(kinds=(RESUMING, RATE_ZERO, RATE_INVALID, RATES_DISAGREE, SCHEDULE_OVER), find=_find)
