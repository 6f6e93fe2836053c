"""Is one tensor the other in another type: rounded to the nearest, cut off, or widened exactly?

Rounding is torch's (`inspector/checkpoint/casts.py`): ties to even, float64 to 16 bits by way of float32. To 8-bit
floats as torch 2.15 rounds them: what is too large becomes infinite, or NaN where the type has no infinity; for
float8_e4m3fn its largest number, where earlier releases make a NaN of it, which counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.casts import cast
from inspector.checkpoint.floats import float8_table
from inspector.compare.kernel import values

_FLOATS = ("float64", "float32", "float16", "bfloat16")
_EIGHT = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_CLIPPED = "float8_e4m3fn"
_BITS = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16, "bfloat16": np.uint16}
Raw = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Way:
    """One reading: `source` is 0 where the second tensor is made from the first, 1 for the other way round."""

    source: int
    cut: bool


@dataclass(slots=True)
class CastCheck:
    """Fed with the tiles of two tensors of two float types; what is left at the end holds of all of them."""

    a_type: str
    b_type: str
    _open: list[_Way] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = (*_FLOATS, *_EIGHT)
        if self.a_type != self.b_type and self.a_type in known and self.b_type in known:
            self._open = [_Way(source, cut) for source in (0, 1) for cut in (False, True)]

    def add(self, a: Raw, b: Raw) -> None:
        """The next tiles, raw."""
        if self._open:
            sides = ((a, self.a_type), (b, self.b_type))
            self._open = [way for way in self._open if _made_of(sides[way.source], sides[1 - way.source], way.cut)]

    @property
    def rounded(self) -> str:
        """A clause, "" where neither is the other rounded."""
        if _Way(0, False) in self._open:
            return f"rounded to the nearest {self.b_type}"
        return f"the first is the second rounded to the nearest {self.a_type}" if _Way(1, False) in self._open else ""

    @property
    def cut(self) -> str:
        """A clause, "" where neither is the other with its low bits cut off."""
        if _Way(0, True) in self._open:
            return f"low bits cut off to {self.b_type}, not rounded"
        return f"the first is the second with low bits cut off to {self.a_type}" if _Way(1, True) in self._open else ""


def _made_of(source: tuple[Raw, str], made: tuple[Raw, str], cut: bool) -> bool:
    if not cut and made[1] in _FLOATS and source[1] not in _EIGHT:
        bits = cast(*source, made[1]).view(_BITS[made[1]])
        if np.array_equal(bits, np.ascontiguousarray(made[0]).view(_BITS[made[1]])):
            return True
    # Bit for bit, but for what a NaN holds beside being one.
    expected = truncated(*source, made[1]) if cut else rounded(*source, made[1])
    held = values(*made)
    alike = (expected == held) & (np.signbit(expected) == np.signbit(held))
    alike |= np.isnan(expected) & np.isnan(held)
    if made[1] == _CLIPPED:
        alike |= np.isnan(held) & (np.abs(values(*source)) > _steps(_CLIPPED)[1][-1])
    return bool(alike.all())


def rounded(raw: Raw, dtype: str, wanted: str) -> Raw:
    """Raw elements, rounded to another type, as the numbers that they then are."""
    if wanted in _EIGHT:
        return _eight(values(raw, dtype).astype(np.float32), wanted, cut=False)
    if dtype in _EIGHT:
        with np.errstate(over="ignore", invalid="ignore"):
            return values(cast(values(raw, dtype), "float32", wanted), wanted)
    return values(cast(raw, dtype, wanted), wanted)


def truncated(raw: Raw, dtype: str, wanted: str) -> Raw:
    """The same, rounded towards zero."""
    own = values(raw, dtype)
    if wanted in _EIGHT:
        with np.errstate(over="ignore"):
            return _eight(own.astype(np.float32), wanted, cut=True)
    plain = (own, "float32" if own.dtype == np.float32 else "float64")
    with np.errstate(over="ignore", invalid="ignore"):
        made = np.ascontiguousarray(cast(*plain, wanted) if plain[1] != wanted else own.copy())
        bits = made.view(_BITS[wanted]).copy()
        # Sign and magnitude: one less is the next number towards zero.
        bits[np.abs(values(made, wanted)) > np.abs(own)] -= bits.dtype.type(1)
        return values(bits.view(made.dtype), wanted)


@cache
def _steps(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The finite numbers from 0 on, and the middles between each and the next; behind the last as if there were one."""
    positive = float8_table(name)[:0x80].astype(np.float64)
    numbers = positive[np.isfinite(positive)]
    further = 2 * numbers[-1] - numbers[-2]
    return numbers, (numbers + np.append(numbers[1:], further)) / 2


def _eight(own: NDArray[np.float32], name: str, *, cut: bool) -> Raw:
    numbers, middles = _steps(name)
    size = np.abs(own).astype(np.float64)
    if cut:
        at = np.searchsorted(numbers, size, side="right") - 1
    else:
        at = np.searchsorted(middles, size, side="left")
        # In the very middle the even one: where the lower is odd, the upper.
        tie = (at < len(middles)) & (middles[np.minimum(at, len(middles) - 1)] == size) & (at % 2 == 1)
        at = at + tie
    beyond = {"float8_e5m2": np.inf, _CLIPPED: numbers[-1]}.get(name, np.nan)
    made = np.where(at < len(numbers), numbers[np.minimum(at, len(numbers) - 1)], beyond)
    made = np.where(np.isinf(size), beyond, made)
    made = np.where(np.isnan(own), np.nan, np.copysign(made, own)).astype(np.float32)
    # These have no negative zero.
    return made + np.float32(0.0) if name.endswith("fnuz") else made
