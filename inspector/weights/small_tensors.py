"""Statistics of many small tensors of one type and shape at once: those of `measure_tensor` to the last bit, without
numpy being called some eighty times for each.

Sums follow `moments.py` and `row_sums.py`: a tile is a table of 512 columns of which a small tensor fills a few, and
columns of zeros change no sum. What is rare (NaN, infinity, pages that repeat) is left to the way of the single tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.stacks import Stack
from inspector.checkpoint.types import TensorInfo
from inspector.weights.kernel import words_of
from inspector.weights.moments import WIDTH
from inspector.weights.narrower import fit
from inspector.weights.page_runs import find_runs
from inspector.weights.report import PAGE, Pages, Rows, TensorStatistics, ValueTable
from inspector.weights.row_sums import has_rows, row_totals, short_sums
from inspector.weights.table import cell_of

_SPARSE = 0.4
_MOST_DISTINCT = 256
_ROWS_AT_ONCE = 512
# What numpy adds up with eight running sums, and above it in halves.
_BLOCK, _LANES = 128, 8

Floats = NDArray[np.float64]


def measure_stack(stack: Stack) -> Iterator[tuple[TensorInfo, TensorStatistics]]:
    """In the stack's order; of tensors that are not finite throughout there is none."""
    first = stack.tensors[0]
    values, codes = _values(stack.raw, first.dtype)
    finite = np.isfinite(values.min(axis=1)) & np.isfinite(values.max(axis=1))
    tensors = [tensor for tensor, fine in zip(stack.tensors, finite.tolist(), strict=True) if fine]
    if not tensors:
        return
    if len(tensors) < len(stack.tensors):
        values, codes = values[finite], codes[finite]
    raw = stack.raw[finite] if len(tensors) < len(stack.tensors) else stack.raw
    minimum, maximum, mean, std, rms = _moments(raw, values)
    zero = np.count_nonzero(values == 0, axis=1)
    columns: dict[str, Sequence[Any]] = {
        "minimum": minimum,
        "maximum": maximum,
        "mean": mean,
        "std": std,
        "rms": rms,
        "zero": zero.tolist(),
        "table": _tables(codes, "float16" if first.dtype == "float16" else ""),
        "rows": _rows(values, first) or [None] * len(tensors),
        "values": _short(values) if len(first.shape) == 1 else [b""] * len(tensors),
        "fits": _fits(values) if first.dtype == "float32" else [""] * len(tensors),
        "distinct": _distinct(values),
        "fours": _fours(values, zero),
        "pages": _pages(values, raw if raw.dtype.itemsize < 4 else values, zero),
    }
    same: dict[str, Any] = {"shape": first.shape, "dtype": first.dtype, "numel": values.shape[1]}
    same |= {"nan": 0, "infinite": 0, "first_non_finite": None}
    names = tuple(columns)
    for tensor, *each in zip(tensors, *columns.values(), strict=True):
        own = dict(zip(names, each, strict=True))
        yield tensor, TensorStatistics(name=tensor.name, path=tensor.path, **same, **own)


def _values(raw: NDArray[Any], dtype: str) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """(values, cells or codes), both (tensors, numel): float32 where that holds every value of the type, else
    float64."""
    if dtype == "float32":
        return raw, (raw.view(np.uint32) >> 16).astype(np.uint16)
    if dtype == "bfloat16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32), raw
    if dtype == "float16":
        with np.errstate(invalid="ignore"):
            return raw.astype(np.float32), raw.view(np.uint16)
    wide = raw.astype(np.float64)
    return wide, cell_of(wide)


def _moments(
    raw: NDArray[Any], values: NDArray[Any]
) -> tuple[list[Any], list[Any], list[float], list[float], list[float]]:
    """Minimum, maximum, mean, standard deviation and root mean square of each."""
    own = values.astype(np.float64)
    low, high = own.min(axis=1) + 0.0, own.max(axis=1) + 0.0
    mean = _sums(own) / own.shape[1]
    own -= mean[:, None]
    np.square(own, out=own)
    spread = _sums(own)
    # Of integers exactly, also beyond 2^53.
    ends = (raw.min(axis=1), raw.max(axis=1)) if raw.dtype == np.int64 else (low, high)
    # Of a constant no rounding is left.
    constant = ends[0] == ends[1]
    mean, spread = np.where(constant, low, mean), np.where(constant, 0.0, spread)
    variance = np.maximum(spread / own.shape[1], 0.0)
    rms = np.sqrt(variance + mean * mean)
    return ends[0].tolist(), ends[1].tolist(), mean.tolist(), np.sqrt(variance).tolist(), rms.tolist()


def _sums(own: Floats) -> Floats:
    """The sum of each row, in the order of `moments.py`."""
    count, numel = own.shape
    whole = numel // WIDTH
    if whole:
        sums = own[:, :WIDTH].copy()
        for row in range(1, whole):
            sums += own[:, row * WIDTH : (row + 1) * WIDTH]
    else:
        # As much of the 512 columns as numpy's pairwise sum takes for one of its blocks: zeros beyond it add nothing.
        narrow = -(-numel // _LANES) * _LANES
        sums = np.zeros((count, narrow if narrow <= _BLOCK else 2 * _BLOCK if narrow <= 2 * _BLOCK else WIDTH))
    rest = own[:, whole * WIDTH :]
    sums[:, : rest.shape[1]] += rest
    found: Floats = np.add.reduce(sums, axis=1)
    return found


def _tables(codes: NDArray[np.uint16], of: str) -> list[ValueTable]:
    ordered = np.sort(codes, axis=1)
    new = _is_new(ordered)
    first = np.flatnonzero(new)
    counts = np.diff(first, append=ordered.size).astype(np.uint64).tobytes()
    found = ordered.ravel()[first].tobytes()
    ends = np.cumsum(np.count_nonzero(new, axis=1)).tolist()
    return [
        ValueTable(codes=found[2 * begin : 2 * end], counts=counts[8 * begin : 8 * end], of=of)
        for begin, end in zip([0, *ends], ends, strict=False)
    ]


def _is_new(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    new = np.empty(ordered.shape, bool)
    new[:, 0] = True
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    return new


def _distinct(values: NDArray[Any]) -> list[int | None]:
    counts = np.count_nonzero(_is_new(np.sort(values, axis=1)), axis=1)
    return [count if count <= _MOST_DISTINCT else None for count in counts.tolist()]


def _fits(values: NDArray[np.float32]) -> list[str]:
    """The shortest type that holds each."""
    found = [""] * len(values)
    for name in ("float16", "bfloat16"):
        for place in np.flatnonzero(fit(values, name).all(axis=1)).tolist():
            found[place] = name
    return found


def _short(values: NDArray[Any]) -> list[bytes]:
    wide = values.astype(np.float64).tobytes()
    step = 8 * values.shape[1]
    return [wide[at : at + step] for at in range(0, len(wide), step)]


def _fours(values: NDArray[Any], zero: NDArray[np.intp]) -> list[int]:
    found = np.zeros(len(values), np.int64)
    numel = values.shape[1]
    sparse = np.flatnonzero(zero >= _SPARSE * numel)
    if len(sparse):
        fours = (values[sparse, : numel // 4 * 4].reshape(len(sparse), -1, 4) == 0).sum(axis=2)
        found[sparse] = (fours >= 2).sum(axis=1)
    counts: list[int] = found.tolist()
    return counts


def _pages(values: NDArray[Any], elements: NDArray[Any], zero: NDArray[np.intp]) -> list[Pages]:
    """Zeroed and repeated pages: nearly always none, which the marks side by side tell. elements: what is marked."""
    count = values.shape[1] // PAGE
    found = [Pages(count=count)] * len(values)
    if not count:
        return found
    table = np.ascontiguousarray(values[:, : count * PAGE]).reshape(-1, count, PAGE)
    own = np.ascontiguousarray(elements[:, : count * PAGE]).reshape(-1, count, PAGE)
    bits = words_of(own)
    marks = np.empty((len(values), count, 2), np.uint32)
    np.add.reduce(bits, axis=2, dtype=np.uint32, out=marks[:, :, 0])
    np.bitwise_xor.reduce(bits, axis=2, out=marks[:, :, 1])
    ordered = np.sort(marks[:, :, 0].astype(np.uint64) << np.uint64(32) | marks[:, :, 1], axis=1)
    odd = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1) | (zero >= PAGE)
    for place in np.flatnonzero(odd).tolist():
        found[place] = find_runs(marks[place], (table[place] == 0).all(axis=1))
    return found


def _rows(values: NDArray[Any], first: TensorInfo) -> list[Rows]:
    """[] where none are kept."""
    shape = first.shape
    if not has_rows(shape) or first.dtype == "int64":
        return []
    tensors, (count, length) = len(values), (shape[0], math.prod(shape[1:]))
    sizes = np.abs(values).reshape(tensors, count, length)
    across = np.zeros((tensors, length))
    for begin in range(0, count, _ROWS_AT_ONCE):
        across += sizes[:, begin : begin + _ROWS_AT_ONCE].sum(axis=1)
    across = across.reshape(tensors, shape[1], -1).sum(axis=2)
    largest = short_sums(sizes.max(axis=2).astype(np.float64))
    total = short_sums(row_totals(sizes.reshape(-1, length)))
    joined = short_sums(across)
    of, wide = 4 * count, 4 * shape[1]
    return [
        Rows(
            count=count,
            length=length,
            columns=shape[1],
            largest=largest[i * of : (i + 1) * of],
            total=total[i * of : (i + 1) * of],
            across=joined[i * wide : (i + 1) * wide],
        )
        for i in range(tensors)
    ]
