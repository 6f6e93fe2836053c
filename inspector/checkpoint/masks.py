"""Which tensors hold infinity on purpose: masks that are added to attention, 0 where it may look and -inf where not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: In place of -inf: the least numbers of float16, bfloat16, float32 and float64.
LEAST = (-65504.0, -3.3895313892515355e38, float(np.finfo(np.float32).min), float(np.finfo(np.float64).min))
# A square of fewer rows is one by chance.
_SMALLEST = 3
# No mask is called so; zeros and infinities in these are what is left of a training that failed.
_NEVER = ("weight", "running_mean", "running_var")


def is_additive_mask(name: str, pieces: Iterable[NDArray[Any]]) -> bool:
    """Whether a tensor is all zeros and -inf (or a type's least number), with both. pieces: its numbers, as floats."""
    if name.rpartition(".")[2] in _NEVER:
        return False
    opens = hides = False
    for piece in pieces:
        zero = np.equal(piece, 0)
        least = np.isneginf(piece) | np.isin(piece, LEAST)
        if not bool((zero | least).all()):
            return False
        opens, hides = opens or bool(zero.any()), hides or bool(least.any())
    return opens and hides


def is_causal_mask(numbers: NDArray[Any]) -> bool:
    """Whether it can be nothing but a mask, whatever it is called: 0 on a band along the diagonal, or on one side of
    it, and -inf (or a type's least number) everywhere else, the same in each of its squares.

    numbers: (..., n, n). One infinity in a corner is none.
    """
    size = numbers.shape[-1] if numbers.ndim >= 2 else 0
    if size < _SMALLEST or numbers.shape[-2] != size:
        return False
    squares = numbers.reshape(-1, size, size)
    hidden = np.isneginf(squares) | np.isin(squares, LEAST)
    first = hidden[0]
    if not ((squares == 0) | hidden).all() or (hidden != first).any() or (first[1:, 1:] != first[:-1, :-1]).any():
        return False
    # What is hidden at each distance from the diagonal, from the last column's corner to the last row's.
    distances = np.concatenate([first[0, ::-1], first[1:, 0]])
    edges = int(np.count_nonzero(distances[1:] != distances[:-1]))
    return bool(not distances[size - 1] and edges <= 2 and np.count_nonzero(first) >= size)
