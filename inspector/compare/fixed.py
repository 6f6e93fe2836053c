"""Equal tensors that are no evidence: masks, sinusoids and other tables that any two networks of a kind hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from inspector.checkpoint.casts import numbers_of
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.relatives.subject import Matrix, is_real, read_numbers
from inspector.compare.report import Relation, TensorDiff
from inspector.errors import InspectorError

#: Elements of a tensor that is looked at; larger ones are no tables.
MOST_NUMEL = 1 << 22
# Positions in two dimensions are sums of waves, which no test below knows.
_NAMES = re.compile(
    r"(^|[._])(pos|position|positional|pe|mask|masked_bias|inv_freq|rope|freqs(_cis)?|anchors?|window)([._]|$)", re.I
)
_FEW_VALUES = 2
_SAMPLED = 4096
# Of their second differences, for tables that were rounded to 16 bits.
_SINUSOID, _LEAST_POSITIONS = 1e-2, 8


def find_evidence(tensors: Iterable[TensorDiff], a: Checkpoint, of_a: Mapping[str, TensorInfo]) -> str:
    """Name of an equal tensor that only a common past explains, "" where there is none.

    It has two dimensions or more, is of real numbers, and no table that is worked out the same everywhere, by its name
    or its numbers. Reads equal tensors, the largest first, until one is such.
    """
    equal = [
        t.a.name
        for t in tensors
        if t.relation is Relation.SAME
        and t.a is not None
        and len(t.a.shape) > 1
        and is_real(t.a.dtype)
        and not _NAMES.search(t.a.name)
    ]
    for name in sorted(equal, key=lambda name: -of_a[name].numel):
        if of_a[name].numel > MOST_NUMEL:
            return name
        try:
            numbers, dtype = read_numbers(a, of_a[name])
        except (InspectorError, OSError, ValueError, MemoryError):
            continue
        if numbers.size != of_a[name].numel or not numbers.size:
            continue
        if not is_table(np.asarray(numbers_of(numbers, dtype), np.float64).reshape(-1, of_a[name].shape[-1])):
            return name
    return ""


def is_table(values: Matrix) -> bool:
    """Whether its numbers follow from its shape: of two values at most (masks, identities, ones), or waves.

    values: (positions, dimensions).
    """
    if (
        len(np.unique(values[: 1 + _SAMPLED // values.shape[1]])) <= _FEW_VALUES
        and len(np.unique(values)) <= _FEW_VALUES
    ):
        return True
    return _are_waves(values) or _are_waves(values.T)


def _are_waves(values: Matrix) -> bool:
    """Whether each column is a sinusoid (or a constant) of its row: x[t+1] + x[t-1] = 2 cos(w) x[t]."""
    if len(values) < _LEAST_POSITIONS:
        return False
    here, beside = values[1:-1], values[2:] + values[:-2]
    squares = (here * here).sum(axis=0)
    factor = np.where(squares > 0, (here * beside).sum(axis=0) / np.where(squares > 0, squares, 1.0), 0.0)
    size = float(np.linalg.norm(beside))
    left = float(np.linalg.norm(beside - factor * here))
    return left <= _SINUSOID * size if size else not values.any()
