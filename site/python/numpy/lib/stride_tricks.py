"""Views by their shape and steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy._array import ndarray


def as_strided(array: ndarray, shape: Sequence[int], strides: Sequence[int], writeable: bool = True) -> ndarray:
    """A view; the caller vouches that it lies inside the memory, and what does not is refused when it is read."""
    from numpy import _shape

    return ndarray(array.memory, array.dtype, _shape(shape), tuple(strides), array.start)


def __getattr__(name: str) -> Any:
    from numpy._types import refuse

    if name.startswith("__"):
        raise AttributeError(name)
    raise refuse(f"numpy.lib.stride_tricks.{name}")
