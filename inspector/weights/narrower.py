"""Would a shorter type hold the same numbers, and are there only a handful of them? Given up at the first tile that
says no, which for trained weights is the first one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# What is looked at first, before a whole tile.
_SAMPLE = 1024
_MOST_VALUES = 256
_CANDIDATES = {"float32": ("bfloat16", "float16"), "float64": ("bfloat16", "float16", "float32")}


class Narrower:
    """Watches one tensor of a type of 32 or 64 bits; of others it says nothing."""

    def __init__(self, dtype: str) -> None:
        self._left = list(_CANDIDATES.get(dtype, ()))
        self._known: NDArray[Any] | None = np.empty(0) if dtype.endswith(("32", "64")) else None
        self._seen = False

    def look(self, values: NDArray[Any]) -> None:
        """values: (n,) float32 or float64, the next tile."""
        self._seen |= values.size > 0
        # A short one is its own sample.
        looks = (values[:_SAMPLE], values) if values.size > _SAMPLE else (values,)
        for name in self._left[:]:
            if not all(_fits(look, name) for look in looks):
                self._left.remove(name)
        for look in looks:
            if self._known is not None:
                self._known = self._with(look, self._known)

    def _with(self, values: NDArray[Any], known: NDArray[Any]) -> NDArray[Any] | None:
        """The distinct values with these, None where they become too many."""
        found = _distinct(values)
        found = found[~np.isnan(found)]
        if len(known) and len(found) <= _MOST_VALUES:
            found = _distinct(np.concatenate([known, found]))
        return found if len(found) <= _MOST_VALUES else None

    def fits(self) -> tuple[str, ...]:
        """Shorter types that hold all so far, the shortest first; none where nothing was seen."""
        return tuple(self._left) if self._seen else ()

    def known(self) -> NDArray[np.float64] | None:
        """The different values so far, ascending; None where they are more than 256 or not counted."""
        return None if self._known is None else self._known.astype(np.float64)


def union(known: NDArray[np.float64] | None, other: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """The different values of both, None where they are too many or those of one were."""
    if known is None or other is None:
        return None
    found = _distinct(np.concatenate([known, other]))
    return found if len(found) <= _MOST_VALUES else None


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different values, ascending, each NaN by itself at the end: np.unique without its overhead."""
    ordered = np.sort(values)
    new = np.empty(len(ordered), bool)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def _fits(values: NDArray[Any], name: str) -> bool:
    return bool(fit(values, name).all())


def fit(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """Which values, of any shape, a shorter type holds; each NaN does."""
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "bfloat16":
            short = values.astype(np.float32)
            same = (short.view(np.uint32) & np.uint32(0xFFFF)) == 0
            if values.dtype != np.float32:
                same &= short == values
        else:
            same = values.astype(name).astype(values.dtype) == values
    kept: NDArray[np.bool_] = same | np.isnan(values)
    return kept
