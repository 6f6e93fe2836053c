"""Buffers that nobody trains: what they must hold follows from their shape, so a wrong place shows in the numbers.

Sources: transformers' position_ids and attn.bias (GPT-2; GPT-Neo's local layers keep a band of the triangle), rotary
inv_freq (base ** -(2 i / d), scaled variants keep the order), Swin's and BEiT's relative_position_index (their papers'
code: offsets in a window, three further rows for BEiT's class token).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

_MOST = 1 << 26  # elements that are worth comparing
_CASTS = (torch.float16, torch.bfloat16)

# (what is wrong, what is odd); "" for what is not.
Judgement = tuple[str, str]
_RIGHT: Judgement = ("", "")


def judge_constant(name: str, tensor: Tensor) -> Judgement:
    """A tensor against the constant that its last name announces; any other name is right."""
    judge = _JUDGES.get(name.rpartition(".")[2])
    if judge is None or not 0 < tensor.numel() <= _MOST or tensor.dtype.is_complex:
        return _RIGHT
    return judge(name, tensor.double())


def _positions(name: str, held: Tensor) -> Judgement:
    if held.numel() != held.shape[-1]:
        return _RIGHT  # not one row
    row = held.reshape(-1)
    counting = torch.arange(row.numel(), dtype=torch.float64) + row[0]
    if torch.equal(row, counting) and row[0] >= 0:
        return _RIGHT
    for cast in _CASTS:
        if torch.equal(row, counting.to(cast).double()):
            at = int((row != counting).nonzero()[0])
            digits = str(cast).removeprefix("torch.")
            says = f"{name} lost whole numbers in a cast to {digits}"
            return "", f"{says}: {counting[at]:.0f} is stored as {row[at]:.0f}."
    return f"{name} does not count: it begins with {', '.join(f'{n:.3g}' for n in row[:4].tolist())}.", ""


def _causal(name: str, held: Tensor) -> Judgement:
    # Biases of layers have one dimension; masks are (1, 1, n, n).
    if held.dim() != 4 or held.shape[0] != 1 or held.shape[1] != 1 or held.shape[2] != held.shape[3]:
        return _RIGHT
    square = held[0, 0]
    if bool(torch.triu(square, 1).any()) or not bool((torch.diagonal(square) == 1).all()):
        return f"{name} is no causal mask: it lets a position see later ones, or hides it from itself.", ""
    return _RIGHT


def _frequencies(name: str, held: Tensor) -> Judgement:
    row = held.reshape(-1)
    if bool((row <= 0).any()) or bool((row[1:] > row[:-1]).any()):
        return f"{name} holds no rotary frequencies: these are positive and fall from the first to the last.", ""
    return _RIGHT


def _window_offsets(name: str, held: Tensor) -> Judgement:
    """Which row of the table each pair of places in a square window uses; (n * n,) or (n, n)."""
    if held.dim() == 1:
        side = math.isqrt(held.numel())
        if side * side != held.numel():
            return _RIGHT
        held = held.reshape(side, side)
    if held.dim() != 2 or held.shape[0] != held.shape[1]:
        return _RIGHT
    count = held.shape[0]
    for tokens in (0, 1):
        window = math.isqrt(count - tokens)
        if window > 1 and window * window + tokens == count:
            if torch.equal(held, _offsets(window, tokens)):
                return _RIGHT
            return f"{name} does not hold the offsets inside a {window}x{window} window.", ""
    return _RIGHT


def _offsets(window: int, tokens: int) -> Tensor:
    axis = torch.arange(window)
    rows, columns = (grid.reshape(-1) for grid in torch.meshgrid(axis, axis, indexing="ij"))
    down = rows[:, None] - rows[None] + window - 1
    across = columns[:, None] - columns[None] + window - 1
    table = down * (2 * window - 1) + across
    if not tokens:
        return table.double()
    last = (2 * window - 1) ** 2 + 3
    whole = torch.full((table.shape[0] + 1,) * 2, last - 3)
    whole[1:, 1:] = table
    whole[:, 0] = last - 2
    whole[0, 0] = last - 1
    # From the class token to a place, from a place to it, and to itself.
    return whole.double()


_JUDGES: dict[str, Callable[[str, Tensor], Judgement]] = {
    "position_ids": _positions,
    "bias": _causal,
    "inv_freq": _frequencies,
    "relative_position_index": _window_offsets,
}
