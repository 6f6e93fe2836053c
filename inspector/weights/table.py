"""The 65,536 cells of a value table: which cell a value is in, and which values a cell holds.

A cell is named by the top 16 bits of the float32 value: sign, exponent and the first 7 bits of the mantissa, which is
bfloat16's own format. So the table is exact for bfloat16 and within 2^-7 of the value for anything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.report import ValueTable

CELLS = 1 << 16
_QUIET = np.uint16(0x0040)
_FLOAT32_MAX = float(np.finfo(np.float32).max)

# Element types of which every value is a cell's lower end, so that cells are points and not intervals.
EXACT_DTYPES = frozenset(
    {
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "int8",
        "uint8",
        "bool",
    }
)


def cell_of(values: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.uint16]:
    """The cell of each value; same shape.

    Finite float64 values beyond float32's range stay finite: they are put in the outermost finite cell.
    A NaN whose top bits look like an infinity is made quiet, which leaves it a NaN.
    """
    if values.dtype == np.float64:
        clipped = np.where(np.isfinite(values), np.clip(values, -_FLOAT32_MAX, _FLOAT32_MAX), values)
        single = clipped.astype(np.float32)
    else:
        single = values.astype(np.float32, copy=False)
    cells = (single.view(np.uint32) >> 16).astype(np.uint16)
    cells[np.isnan(single)] |= _QUIET
    return cells


def pack(cells: NDArray[np.integer], counts: NDArray[np.integer], *, of: str = "") -> ValueTable:
    """cells (n,) in any order, repeats allowed; counts (n,) positive. of: see `ValueTable`."""
    codes, place = np.unique(cells, return_inverse=True)
    sums = np.zeros(len(codes), np.uint64)
    np.add.at(sums, place, counts.astype(np.uint64))
    return packed(codes, sums, of=of)


def packed(codes: NDArray[np.integer], counts: NDArray[np.integer], *, of: str = "") -> ValueTable:
    """The same of codes that are ascending already, each once."""
    return ValueTable(codes=codes.astype(np.uint16).tobytes(), counts=counts.astype(np.uint64).tobytes(), of=of)


def to_arrays(table: ValueTable) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """codes (n,) ascending and counts (n,)."""
    return np.frombuffer(table.codes, np.uint16), np.frombuffer(table.counts, np.uint64).astype(np.int64)


def add(a: ValueTable, b: ValueTable) -> ValueTable:
    """The table of both together."""
    of = a.of if a.of == b.of else ""
    parts = [to_arrays(table if table.of == of else _in_cells(table)) for table in (a, b)]
    return pack(np.concatenate([codes for codes, _ in parts]), np.concatenate([counts for _, counts in parts]), of=of)


def _in_cells(table: ValueTable) -> ValueTable:
    """The same in cells of float32."""
    if not table.of:
        return table
    codes, counts = to_arrays(table)
    return pack(cell_of(_meant(codes, table.of)), counts)


def _meant(codes: NDArray[np.uint16], of: str) -> NDArray[np.float64]:
    """The value of each bit pattern of a type of 16 bits that numpy has."""
    values: NDArray[np.float64] = codes.view(of).astype(np.float64)
    return values


def finite_cells(
    table: ValueTable, *, exact: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The finite cells in ascending order of value: lower ends (n,), upper ends (n,), counts (n,).

    exact: cells are points, so that both ends are the value itself. Else a positive cell holds [low, high) and a
    negative one (low, high]; the cells next to zero are points at zero.
    """
    codes, counts = to_arrays(table)
    if table.of:
        value = _meant(codes, table.of)
        order = np.argsort(value, kind="stable")
        order = order[np.isfinite(value[order])]
        return value[order], value[order], counts[order]
    keep = is_finite(codes, table.of)
    codes, counts = codes[keep], counts[keep]
    # Codes ascend by size, the negative ones behind the others, and 0x8000 is another zero.
    positive, zero = int(np.searchsorted(codes, 1)), int(np.searchsorted(codes, 0x8000))
    negative = int(np.searchsorted(codes, 0x8001))
    ways = (
        slice(None, negative - 1 if negative else None, -1),
        slice(positive),
        slice(zero, negative),
        slice(positive, zero),
    )
    codes, counts = (np.concatenate([array[way] for way in ways]) for array in (codes, counts))
    return *ends_of(codes, table.of, exact=exact), counts


def is_finite(codes: NDArray[np.uint16], of: str) -> NDArray[np.bool_]:
    """(n,): which cells hold finite values. of: see `ValueTable`."""
    return np.isfinite(_meant(codes, of)) if of else (codes & 0x7F80) != 0x7F80


def ends_of(codes: NDArray[np.uint16], of: str, *, exact: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of finite cells in any order, as `finite_cells` gives them."""
    if of:
        return _meant(codes, of), _meant(codes, of)
    near = _value_of(codes)
    far = near if exact else _value_of_next(codes)
    return np.minimum(near, far), np.maximum(near, far)


def _value_of(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _value_of_next(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    """The end of a cell away from zero."""
    following = _value_of(codes + np.uint16(1))
    # After the outermost finite cell comes infinity; float64 values beyond float32 may be in it too.
    following[~np.isfinite(following)] = np.copysign(_FLOAT32_MAX, following[~np.isfinite(following)])
    following[(codes & 0x7FFF) == 0] = 0.0
    return following
