"""Buffers that nobody trains: what they must hold follows from their shape, so a wrong place shows in the numbers.

Sources: transformers' position_ids and attn.bias (GPT-2; GPT-Neo's local layers keep a band of the triangle), rotary
inv_freq (base ** -(2 i / d), scaled variants keep the order), Swin's and BEiT's relative_position_index (their papers'
code: offsets in a window, three further rows for BEiT's class token).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.casts import cast, numbers_of
from inspector.checkpoint.raw_tensor import RawTensor

_MOST = 1 << 26  # elements that are worth comparing
_CASTS = ("float16", "bfloat16")

Numbers = NDArray[np.float64]
# (what is wrong, what is odd); "" for what is not.
Judgement = tuple[str, str]
_RIGHT: Judgement = ("", "")


def judge_constant(name: str, tensor: RawTensor) -> Judgement:
    """A tensor against the constant that its last name announces; any other name is right."""
    judge = _JUDGES.get(name.rpartition(".")[2])
    if judge is None or not 0 < tensor.numel <= _MOST:
        return _RIGHT
    return judge(name, tensor.numbers.astype(np.float64))


def _positions(name: str, held: Numbers) -> Judgement:
    if held.size != (held.shape or (1,))[-1]:
        return _RIGHT  # not one row
    row = held.reshape(-1)
    counting = np.arange(row.size, dtype=np.float64) + row[0]
    if np.array_equal(row, counting) and row[0] >= 0:
        return _RIGHT
    for digits in _CASTS:
        if np.array_equal(row, numbers_of(cast(counting, "float64", digits), digits).astype(np.float64)):
            at = int(np.flatnonzero(row != counting)[0])
            says = f"{name} lost whole numbers in a cast to {digits}"
            return "", f"{says}: {counting[at]:.0f} is stored as {row[at]:.0f}."
    return f"{name} does not count: it begins with {', '.join(f'{n:.3g}' for n in row[:4].tolist())}.", ""


def _causal(name: str, held: Numbers) -> Judgement:
    # Biases of layers have one dimension; masks are (1, 1, n, n).
    if held.ndim != 4 or held.shape[0] != 1 or held.shape[1] != 1 or held.shape[2] != held.shape[3]:
        return _RIGHT
    square = held[0, 0]
    if bool(np.triu(square, 1).any()) or not bool((np.diagonal(square) == 1).all()):
        return f"{name} is no causal mask: it lets a position see later ones, or hides it from itself.", ""
    return _RIGHT


def _frequencies(name: str, held: Numbers) -> Judgement:
    row = held.reshape(-1)
    if bool((row <= 0).any()) or bool((row[1:] > row[:-1]).any()):
        return f"{name} holds no rotary frequencies: these are positive and fall from the first to the last.", ""
    return _RIGHT


def _window_offsets(name: str, held: Numbers) -> Judgement:
    """Which row of the table each pair of places in a square window uses; (n * n,) or (n, n)."""
    if held.ndim == 1:
        side = math.isqrt(held.size)
        if side * side != held.size:
            return _RIGHT
        held = held.reshape(side, side)
    if held.ndim != 2 or held.shape[0] != held.shape[1]:
        return _RIGHT
    count = held.shape[0]
    for tokens in (0, 1):
        window = math.isqrt(count - tokens)
        if window > 1 and window * window + tokens == count:
            if np.array_equal(held, _offsets(window, tokens)):
                return _RIGHT
            return f"{name} does not hold the offsets inside a {window}x{window} window.", ""
    return _RIGHT


def _offsets(window: int, tokens: int) -> NDArray[np.int64]:
    rows, columns = np.indices((window, window)).reshape(2, -1)
    down = rows[:, None] - rows[None] + window - 1
    across = columns[:, None] - columns[None] + window - 1
    table: NDArray[np.int64] = down * (2 * window - 1) + across
    if not tokens:
        return table
    last = (2 * window - 1) ** 2 + 3
    whole = np.full((table.shape[0] + 1,) * 2, last - 3)
    whole[1:, 1:] = table
    whole[:, 0] = last - 2
    whole[0, 0] = last - 1
    # From the class token to a place, from a place to it, and to itself.
    return whole


_JUDGES: dict[str, Callable[[str, Numbers], Judgement]] = {
    "position_ids": _positions,
    "bias": _causal,
    "inv_freq": _frequencies,
    "relative_position_index": _window_offsets,
}
