"""Rows of a parameter that no gradient has reached: tokens that never occurred, filters that never fired."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.types import TensorInfo
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.equality import Budget
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Subject, examined_as
from inspector.health.training.optimizers import Entry, Optimizer
from inspector.units import counted
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import row_largest

ROWS_WITHOUT_GRADIENT = FindingKind(
    "rows-without-gradient",
    Severity.NOTICE,
    "Rows of a parameter that no gradient has reached",
    also=(Severity.INFO,),
)

_EMBEDDING = re.compile(r"(^|[._])(embed\w*|wte|wpe|tok\w*_emb\w*|emb)\.weight$", re.IGNORECASE)
# Moments that are zero, too, where no gradient has come. Squares alone may have been lost.
_MOVED = ("exp_avg", "momentum_buffer", "grad_avg")
_READ_NBYTES = 256 << 20


def _find(subject: Subject) -> Iterator[Finding]:
    budget = Budget(_READ_NBYTES, "searched for rows without a gradient")
    for optimizer in subject.training.optimizers:
        if not optimizer.most_steps and optimizer.steps:
            continue
        found = [
            (entry, rows)
            for entry in optimizer.entries.values()
            if (rows := _zero_rows(subject, optimizer, entry, budget)) is not None and 0 < len(rows[0]) < rows[1]
        ]
        tables = [(entry, rows) for entry, rows in found if _is_table(subject, optimizer, entry)]
        layers = [(entry, rows) for entry, rows in found if not _is_table(subject, optimizer, entry)]
        if tables:
            yield _tables(optimizer, tables)
        if layers:
            yield _layers(optimizer, layers)
    subject.leave_out(budget.why, budget.left_out)


_Found = list[tuple[Entry, tuple[NDArray[np.int64], int]]]


def _tables(optimizer: Optimizer, found: _Found) -> Finding:
    names = [entry.label for entry, _ in found]
    zero, rows = sum(len(rows[0]) for _, rows in found), sum(rows[1] for _, rows in found)
    ids = [str(number) for number in found[0][1][0][:1000]]
    return ROWS_WITHOUT_GRADIENT.found(
        f"{zero:,} of {rows:,} rows of {listed(names)} never had a gradient: rows {_ids(ids, len(found[0][1][0]))}"
        f"{f' of {names[0]}' if len(found) > 1 else ''}.",
        severity=Severity.INFO,
        subjects=names,
        evidence=(("rows", zero), ("of", rows), ("first", ids[0])),
        remedy="Tokens that never occurred in training: padding, reserved ones, a vocabulary rounded up. What they "
        "answer is what they began with, but for weight decay.",
    )


def _layers(optimizer: Optimizer, found: _Found) -> Finding:
    names = [entry.label for entry, _ in found]
    zero, rows = sum(len(rows[0]) for _, rows in found), sum(rows[1] for _, rows in found)
    return ROWS_WITHOUT_GRADIENT.found(
        f"{zero:,} of {rows:,} rows of {counted(len(found), 'parameter')} in {optimizer.label} never "
        f"had a gradient other than zero: {listed(names)}.",
        subjects=names,
        evidence=(("rows", zero), ("of", rows), ("layers", len(found))),
        remedy="A row is an output channel. Units that never fired (dead ReLUs), pruned ones, and what a zero behind "
        "them cuts off look like this; after a few steps it may still change.",
    )


def _ids(ids: list[str], total: int) -> str:
    return ", ".join(ids[:5]) + (f" and {total - 5:,} more" if total > 5 else "")


def _is_table(subject: Subject, optimizer: Optimizer, entry: Entry) -> bool:
    own = subject.state is not None and optimizer.weights == subject.state.path
    one = subject.by_name.get(entry.name) if own else None
    return (one is not None and one.role is Role.EMBEDDING) or _EMBEDDING.search(entry.name) is not None


def _zero_rows(
    subject: Subject, optimizer: Optimizer, entry: Entry, budget: Budget
) -> tuple[NDArray[np.int64], int] | None:
    """(which rows are all zero, of how many) in every moment that gradients move; None where none tells."""
    found: NDArray[np.bool_] | None = None
    telling = sorted(optimizer.kind.gradients & set(entry.tensors))
    for name in (*telling, *(name for name in _MOVED if telling and name not in telling)):
        tensor = entry.tensors.get(name)
        t = subject.measured_by_path.get(tensor.path) if tensor is not None else None
        if tensor is None or t is None or len(t.shape) < 2 or not t.numel or not t.shape[0]:
            continue
        if t.zero < t.numel // t.shape[0]:
            return None
        if t.zero == t.numel:
            if name in telling:
                return None
            continue
        zero = _are_zero(subject, tensor, t, budget)
        if zero is not None:
            found = zero if found is None or len(found) != len(zero) else found & zero
    return (np.flatnonzero(found), len(found)) if found is not None else None


def _are_zero(subject: Subject, tensor: TensorInfo, t: TensorStatistics, budget: Budget) -> NDArray[np.bool_] | None:
    """(rows,), None where that cannot be read."""
    if t.rows is not None:
        largest = row_largest(t.rows)
    else:
        one = examined_as(Role.MOMENT, tensor, t)
        array = subject.array(one) if budget.take(tensor, 1) else None
        if array is None:
            return None
        largest = np.abs(array).reshape(t.shape[0], -1).max(axis=1)
    zero: NDArray[np.bool_] = largest == 0
    return zero


CHECK = Check(kinds=(ROWS_WITHOUT_GRADIENT,), find=_find)
