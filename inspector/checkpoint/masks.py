"""Which tensors hold infinity on purpose: masks that are added to attention, 0 where it may look and -inf where not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In place of -inf: the least numbers of float16, bfloat16, float32 and float64.
_LEAST = (-65504.0, -3.3895313892515355e38, float(np.finfo(np.float32).min), float(np.finfo(np.float64).min))
# No mask is called so; zeros and infinities in these are what is left of a training that failed.
_NEVER = ("weight", "running_mean", "running_var")


def is_additive_mask(name: str, pieces: Iterable[NDArray[Any]]) -> bool:
    """Whether a tensor is all zeros and -inf (or a type's least number), with both. pieces: its numbers, as floats."""
    if name.rpartition(".")[2] in _NEVER:
        return False
    opens = hides = False
    for piece in pieces:
        zero = np.equal(piece, 0)
        least = np.isneginf(piece) | np.isin(piece, _LEAST)
        if not bool((zero | least).all()):
            return False
        opens, hides = opens or bool(zero.any()), hides or bool(least.any())
    return opens and hides
