"""Moments that contradict what they belong to: of zero or missing beside a trained weight, or beside each other.

Adam moves a weight by lr m / (sqrt(v) + eps) (Kingma and Ba 2014, 1412.6980): m is an average of gradients and v of
their squares, so that v is zero only where every gradient was, and m then is too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.types import TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.equality import Budget
from inspector.health.moved import has_moved, looking_at
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Subject, examined_as
from inspector.health.training.optimizers import Entry, Optimizer
from inspector.units import counted, human_share
from inspector.weights.report import TensorStatistics

STATE_LOST = FindingKind(
    "optimizer-state-lost",
    Severity.WARNING,
    "An optimizer's state of a trained parameter is gone",
    also=(Severity.NOTICE,),
)
CONTRADICT = FindingKind(
    "moments-contradict", Severity.WARNING, "Moments of a parameter contradict each other", also=(Severity.NOTICE,)
)

# Of more parameters it was meant: biases alone are trained, or a part is frozen.
_MOST = 0.25
# Averages of squares, and what cannot be other than zero beside a square of zero: averaged gradients, of which smaller
# ones may have a square of zero as float32, and RMSprop's steps, which were divided by it.
_LEAST_GRADIENT = 1e-15
_PAIRS = (
    ("exp_avg_sq", (("exp_avg", _LEAST_GRADIENT),)),
    ("square_avg", (("grad_avg", _LEAST_GRADIENT), ("momentum_buffer", 1e-8))),
)
_LEAST_NUMBERS = 8
_READ_NBYTES = 256 << 20


def _find(subject: Subject) -> Iterator[Finding]:
    budget = Budget(_READ_NBYTES, "searched for squares that were lost")
    for optimizer in subject.training.optimizers:
        zero, missing = lost_state(subject, optimizer)
        for keys, how in ((zero, "moments of nothing but zeros"), (missing, "no moments")):
            if keys:
                yield _lost(subject, optimizer, keys, how)
        yield from _contradicting(subject, optimizer, budget)
    subject.leave_out(budget.why, budget.left_out)


def lost_state(subject: Subject, optimizer: Optimizer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys of parameters that were trained, in a module whose other parameters have moments: those whose own are zero
    though steps were counted, and those without any."""
    own = looking_at(subject, optimizer.weights) if optimizer.weights is not None else None
    keys = [key for group in optimizer.groups for key in group.keys]
    if own is None or not optimizer.whole or not optimizer.most_steps or optimizer.kind.name == "LBFGS":
        return (), ()
    states = {key: _moments(subject, optimizer, key) for key in keys}
    alive = {key for key, moments in states.items() if any(t.zero < t.numel for t in moments.values())}
    modules = {optimizer.names[key].rpartition(".")[0] for key in alive if key in optimizer.names}
    found: list[str] = []
    for key in keys:
        name = optimizer.names.get(key, "")
        if key not in alive and name in own.by_name and name.rpartition(".")[0] in modules:
            found += [key] if has_moved(own, own.by_name[name]) is not False else []
    if len(found) > _MOST * len(keys):
        return (), ()
    zero = tuple(key for key in found if states[key] and optimizer.steps.get(key, 0) > 1)
    return zero, tuple(key for key in found if key not in optimizer.entries)


def _moments(subject: Subject, optimizer: Optimizer, key: str) -> dict[str, TensorStatistics]:
    """What was measured of a parameter's state, as large as the parameter, by field."""
    entry = optimizer.entries.get(key)
    tensors = entry.tensors if entry is not None else {}
    measured = {name: subject.measured_by_path.get(tensor.path) for name, tensor in tensors.items()}
    return {name: t for name, t in measured.items() if t is not None and t.shape and t.numel and name != "step"}


def squares_lost(subject: Subject, entry: Entry, budget: Budget) -> int:
    """Numbers of a parameter whose averaged square is zero though its averaged gradient, or step, is not; 0 where they
    are too few to tell, or cannot be read again."""
    for squares, firsts in _PAIRS:
        second = entry.tensors.get(squares)
        t = subject.measured_by_path.get(second.path) if second is not None else None
        if second is None or t is None or not t.zero or t.dtype == "float16" or t.finite < t.numel:
            continue
        for name, least in firsts:
            first = entry.tensors.get(name)
            of = subject.measured_by_path.get(first.path) if first is not None else None
            if first is None or of is None or of.shape != t.shape or of.finite < of.numel or of.zero == of.numel:
                continue
            if max(abs(of.minimum), abs(of.maximum)) <= least:
                continue
            if t.zero == t.numel:
                return of.numel - of.zero
            arrays = [_read(subject, tensor) for tensor in (second, first)] if budget.take(first) else []
            if len(arrays) == 2 and arrays[0] is not None and arrays[1] is not None:
                count = int(((arrays[0] == 0) & (np.abs(arrays[1]) > least)).sum())
                return count if count >= _LEAST_NUMBERS else 0
    return 0


def _read(subject: Subject, tensor: TensorInfo) -> NDArray[np.float64] | None:
    one = examined_as(Role.MOMENT, tensor, subject.measured_by_path.get(tensor.path))
    return subject.array(one)


def _lost(subject: Subject, optimizer: Optimizer, keys: tuple[str, ...], how: str) -> Finding:
    names = [optimizer.names[key] for key in keys]
    own = looking_at(subject, optimizer.weights)
    # What is frozen has no moments rather than moments of zero.
    stepped = all(key in optimizer.entries for key in keys)
    sure = own is not None and all(has_moved(own, own.by_name[name]) for name in names)
    return STATE_LOST.found(
        f"{optimizer.called} has {how} for {counted(len(names), 'parameter')} whose numbers are not those that torch "
        f"initialises with, after {optimizer.most_steps or 0:,.0f} steps: {listed(names)}. Other parameters of the "
        "same modules have moments.",
        severity=Severity.WARNING if stepped and sure else Severity.NOTICE,
        subjects=names,
        evidence=(("parameters", len(names)), ("listed", optimizer.listed), ("steps", optimizer.most_steps or 0)),
        remedy="The weight was trained and its state was lost: after resuming, its first steps are as long as those of "
        "a new training. Take an earlier checkpoint, or warm up again. Harmless where it came from another training "
        "and is frozen in this one.",
    )


def _contradicting(subject: Subject, optimizer: Optimizer, budget: Budget) -> Iterator[Finding]:
    without_squares: list[tuple[str, int, int]] = []
    without_gradients: list[str] = []
    for key, entry in optimizer.entries.items():
        moments = _moments(subject, optimizer, key)
        lost = squares_lost(subject, entry, budget)
        if lost:
            without_squares.append((entry.label, lost, math.prod(next(iter(moments.values())).shape)))
        first, second = moments.get("exp_avg"), moments.get("exp_avg_sq")
        if first is None or second is None or not (first.finite and second.finite):
            continue
        if first.zero == first.numel and second.zero < second.numel:
            without_gradients.append(entry.label)
    if without_squares:
        names = [name for name, _, _ in without_squares]
        count, numel = sum(each[1] for each in without_squares), sum(each[2] for each in without_squares)
        yield CONTRADICT.found(
            f"{optimizer.called} has averages of squares of exactly zero for {count:,} of {numel:,} numbers "
            f"({human_share(count / numel)}) of {counted(len(names), 'parameter')}, and averaged gradients there that "
            f"are not zero: {listed(names)}.",
            subjects=names,
            evidence=(("parameters", len(names)), ("numbers", count), ("of", numel)),
            remedy="The next step divides by eps alone, and throws these weights far away. A square below 6e-8 is zero "
            "as float16, so that a state which went through it looks like this. Drop the state and warm up again, or "
            "take an earlier checkpoint.",
        )
    if without_gradients:
        yield CONTRADICT.found(
            f"{optimizer.called} has averaged squares other than zero for "
            f"{counted(len(without_gradients), 'parameter')}, and averaged gradients of nothing but zeros: "
            f"{listed(without_gradients)}.",
            severity=Severity.NOTICE,
            subjects=without_gradients,
            evidence=(("parameters", len(without_gradients)),),
            remedy="Gradients that have been zero for a thousand steps end like this (a branch that is used no more, a "
            "layer that died). Otherwise the averages were lost.",
        )


CHECK = Check(kinds=(STATE_LOST, CONTRADICT), find=_find)
