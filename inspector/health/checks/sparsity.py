"""How many weights are exactly zero, and in which pattern: 2:4 (Mishra et al. 2021, arXiv:2104.08378), blocks, none.

Of weights that are zero with probability p by chance, a group of four holds two zeros or more with probability
1 - (1-p)^4 - 4 p (1-p)^3: 0.69 at a half, so nearly all groups doing so is a pattern.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.axes import is_pruned, zeros_between
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS
from inspector.health.subject import Examined, Subject
from inspector.units import human_share
from inspector.weights.report import TensorStatistics

SPARSE_WEIGHTS = FindingKind("sparse-weights", Severity.NOTICE, "Many weights are exactly zero", also=(Severity.INFO,))

# Beyond it, groups of four hold two zeros by chance.
_MOST_FOR_PATTERN = 0.6
_LEAST_FOR_PATTERN = 0.45
_BLOCKS = (32, 16, 8, 4)
# Share of the zeros that lie in blocks of nothing else.
_IN_BLOCKS = 0.99
_LEAST_BLOCKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sparse:
    name: str
    numel: int
    zero: int
    pattern: str

    @property
    def share(self) -> float:
        return self.zero / self.numel


def _find(subject: Subject) -> Iterator[Finding]:
    groups: dict[str, list[_Sparse]] = defaultdict(list)
    columns, limits = subject.columns, subject.thresholds
    many = (columns.zero >= limits.sparse * columns.numel) & (columns.numel >= limits.few) & columns.varied
    for one, t in subject.those(subject.among(*LAYERS) & many):
        # Rows without weights are said as dead outputs.
        if zeros_between(t) < subject.thresholds.sparse * t.numel:
            continue
        pattern = _pattern(subject, one, t)
        groups[pattern].append(_Sparse(name=one.name, numel=t.numel, zero=t.zero, pattern=pattern))
    for layers in groups.values():
        yield _finding(subject, sorted(layers, key=lambda each: -each.share))


def _pattern(subject: Subject, one: Examined, t: TensorStatistics) -> str:
    """ "2:4", "whole blocks of 16 x 16", "a mask beside it", or "" for no pattern that is known."""
    if is_pruned(subject, one):
        return "a mask beside it"
    share = t.zero / t.numel
    if _LEAST_FOR_PATTERN <= share <= _MOST_FOR_PATTERN and _fours(subject, one, t) >= subject.thresholds.two_of_four:
        return "2:4"
    array = subject.array(one) if len(t.shape) == 2 else None
    size = _block_size(np.asarray(array == 0)) if array is not None else 0
    return f"whole blocks of {size} x {size}" if size else ""


def _fours(subject: Subject, one: Examined, t: TensorStatistics) -> float:
    """Share of the groups of four along the inputs with two zeros or more."""
    inputs = t.shape[1] if len(t.shape) > 1 else 0
    if not inputs or inputs % 4:
        return 0.0
    if math.prod(t.shape[2:]) == 1:
        return t.fours / (t.numel // 4)
    array = subject.array(one)
    if array is None:
        return 0.0
    zeros = np.moveaxis(np.asarray(array == 0), 1, -1).reshape(-1, 4).sum(axis=1)
    return float((zeros >= 2).mean())


def _block_size(zero: NDArray[np.bool_]) -> int:
    """The largest size of which nearly all zeros lie in whole blocks; 0 for none. zero: (out, in)."""
    whole = int(zero.sum())
    # Dead rows and columns are no blocks.
    rows_dead, columns_dead = np.all(zero, axis=1, keepdims=True), np.all(zero, axis=0, keepdims=True)
    zero = zero & ~rows_dead & ~columns_dead
    if not whole or zero.sum() < whole / 2:
        return 0
    for size in _BLOCKS:
        rows, columns = (n // size * size for n in zero.shape)
        if rows != zero.shape[0] or columns != zero.shape[1] or rows * columns < _LEAST_BLOCKS * size * size:
            continue
        blocks = zero.reshape(rows // size, size, columns // size, size).all(axis=(1, 3))
        if blocks.sum() * size * size >= _IN_BLOCKS * zero.sum():
            return size
    return 0


def _finding(subject: Subject, layers: Sequence[_Sparse]) -> Finding:
    worst, names = layers[0], [each.name for each in layers]
    pattern = worst.pattern
    zero, numel = sum(each.zero for each in layers), sum(each.numel for each in layers)
    known = {"": "", "2:4": ", two of every four inputs", "a mask beside it": ", and a mask beside it"}
    says = known.get(pattern, f", in {pattern}")
    return SPARSE_WEIGHTS.found(
        f"{worst.zero:,} of {worst.numel:,} weights of {shown(worst.name)} ({human_share(worst.share)}) are exactly "
        f"zero{says}{also(names)}.",
        severity=Severity.INFO if pattern == "2:4" else Severity.NOTICE,
        subjects=names,
        evidence=(
            *(("zero", zero), ("numel", numel), ("share", zero / numel), ("pattern", pattern or "none")),
            *(("tensors", len(layers)), ("threshold", subject.thresholds.sparse)),
        ),
        remedy="Graphics cards multiply 2:4 matrices up to twice as fast; torch.sparse.to_sparse_semi_structured makes "
        "them."
        if pattern == "2:4"
        else "Pruning leaves this on purpose. Without it, look at how the tensor was written: dense weights are almost "
        "never exactly zero.",
    )


CHECK = Check(kinds=(SPARSE_WEIGHTS,), find=_find)
