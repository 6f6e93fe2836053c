"""Buffers that a network computes when it is built, as pure functions of their shape. Nothing is learned in them.

Each kind is written twice, as a function and as lines of Python; a test holds them equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.types import Shape


@dataclass(frozen=True, slots=True)
class Computed:
    """One kind. leaves: what such a buffer is called. fits: whether this shape can be one. make: its value.

    lines: the same in Python, into a variable `buffer`. fills: whether its value can be filled in: all of it follows
    from the shape. inside: what a module around it must be called, where others compute with such buffers.
    """

    leaves: tuple[str, ...]
    what: str
    fits: Callable[[Shape], bool]
    make: Callable[[Shape], NDArray[np.generic]]
    lines: Callable[[Shape], list[str]]
    fills: bool = True
    inside: str = ""


def _counting(shape: Shape) -> NDArray[np.int64]:
    return np.arange(shape[-1], dtype=np.int64).reshape(shape)


def _window(shape: Shape) -> int:
    """The side of the window of an index over pairs of its places, () and cut alike; 0 where it is none."""
    pairs = shape[0] * shape[1] if len(shape) == 2 else shape[0] if len(shape) == 1 else 0
    side = math.isqrt(math.isqrt(pairs))
    square = len(shape) == 1 or shape[0] == shape[-1]
    return side if side > 1 and side**4 == pairs and square else 0


def _pairs(shape: Shape) -> NDArray[np.int64]:
    """Swin's relative_position_index (Liu 2021): row (2 w - 1) * difference of rows + difference of columns."""
    side = _window(shape)
    places = np.indices((side, side), dtype=np.int64).reshape(2, -1)
    away = places[:, :, None] - places[:, None, :] + side - 1
    pairs: NDArray[np.int64] = away[0] * (2 * side - 1) + away[1]
    return pairs.reshape(shape)


def _pair_lines(shape: Shape) -> list[str]:
    side = _window(shape)
    return [
        f'places = torch.meshgrid(torch.arange({side}), torch.arange({side}), indexing="ij")',
        "places = torch.stack(places).flatten(1)",
        f"away = places[:, :, None] - places[:, None, :] + {side - 1}",
        f"buffer = (away[0] * {2 * side - 1} + away[1]).reshape({shape!r})",
    ]


def _lower(shape: Shape) -> NDArray[np.float32]:
    return np.tri(shape[-2], shape[-1], dtype=np.float32).reshape(shape)


def _frequencies(shape: Shape) -> NDArray[np.float32]:
    """Rotary embedding's inverse frequencies for the usual base of 10,000 (Su 2021, section 3.4.3)."""
    made: NDArray[np.float64] = 1.0 / (10000.0 ** (np.arange(0, 2 * shape[0], 2) / (2 * shape[0])))
    return made.astype(np.float32)


def _coordinates(shape: Shape) -> NDArray[np.float32]:
    """Swin v2's relative_coords_table (Liu 2022, eq. 4): signed logarithms of places in a window, from -1 to 1.

    Rounded where torch rounds, step by step.
    """
    reach = shape[1] // 2
    away = np.arange(-reach, reach + 1, dtype=np.float32) / np.float32(reach) * np.float32(8)
    steps = np.log2((np.abs(away) + np.float32(1)).astype(np.float64)).astype(np.float32)
    line = np.sign(away) * steps / np.float32(3)
    return np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1)[None].astype(np.float32)


def _coordinate_lines(shape: Shape) -> list[str]:
    reach = shape[1] // 2
    return [
        f"away = torch.arange({-reach}, {reach + 1}, dtype=torch.float32) / {reach} * 8",
        "away = torch.sign(away) * torch.log2(away.abs() + 1.0) / 3.0",
        'buffer = torch.stack(torch.meshgrid(away, away, indexing="ij"), dim=-1)[None]',
    ]


def _waves(shape: Shape) -> NDArray[np.float32]:
    """Positions as sines and cosines beside each other (Vaswani 2017, section 3.5), in the steps of torch's example."""
    import torch

    count, width = math.prod(shape[:-1]), shape[-1]
    step = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angle = torch.arange(count)[:, None] * step
    waves: NDArray[np.float32] = torch.stack([angle.sin(), angle.cos()], -1).reshape(shape).numpy()
    return waves


def _wave_lines(shape: Shape) -> list[str]:
    width = shape[-1]
    return [
        f"step = torch.exp(torch.arange(0, {width}, 2) * ({-math.log(10000.0)!r} / {width}))",
        f"angle = torch.arange({math.prod(shape[:-1])})[:, None] * step",
        f"buffer = torch.stack([angle.sin(), angle.cos()], -1).reshape({shape!r})",
    ]


def _upper(shape: Shape) -> NDArray[np.float32]:
    return np.triu(np.ones(shape[-2:], dtype=np.float32), 1).reshape(shape)


def _infinite(shape: Shape) -> NDArray[np.float32]:
    return np.where(_upper(shape) > 0, np.float32(-np.inf), np.float32(0.0))


def _is_mask(shape: Shape) -> bool:
    return len(shape) == 4 and shape[:2] == (1, 1) and shape[2] == shape[3] > 1


_INVERSE_FREQUENCIES = Computed(
    leaves=("inv_freq",),
    what="the rotary frequencies for the base 10,000",
    fits=lambda shape: len(shape) == 1 and shape[0] > 1,
    make=_frequencies,
    lines=lambda shape: [
        f"buffer = (1.0 / (10000.0 ** (torch.arange(0, {2 * shape[0]}, 2).double() / {2 * shape[0]}))).float()"
    ],
    fills=False,
)

COMPUTED: Mapping[str, Computed] = {
    "positions": Computed(
        leaves=("position_ids",),
        what="the positions 0, 1, 2, ...",
        fits=lambda shape: len(shape) in (1, 2) and shape[-1] > 1 and shape[:-1] in ((), (1,)),
        make=_counting,
        lines=lambda shape: [f"buffer = torch.arange({shape[-1]}).reshape({shape!r})"],
    ),
    "window-pairs": Computed(
        leaves=("relative_position_index",),
        what="the index of relative positions in its window",
        fits=lambda shape: bool(shape) and _window(shape) > 0,
        make=_pairs,
        lines=_pair_lines,
    ),
    "window-coordinates": Computed(
        leaves=("relative_coords_table",),
        what="the logarithms of places in its window",
        fits=lambda shape: len(shape) == 4 and shape[::3] == (1, 2) and shape[1] == shape[2] > 2 and shape[1] % 2 == 1,
        make=_coordinates,
        lines=_coordinate_lines,
    ),
    # The leaf is called bias: shape and numbers must both be a mask's.
    "causal-mask": Computed(
        leaves=("bias", "mask", "causal_mask"),
        what="a causal mask",
        fits=_is_mask,
        make=_lower,
        lines=lambda shape: [f"buffer = torch.ones({shape[-2:]!r}).tril().reshape({shape!r})"],
        fills=False,
    ),
    # As torch's own layers take it: what lies ahead is 1, and hidden.
    "future-mask": Computed(
        leaves=("mask", "causal_mask", "attn_mask"),
        what="a mask of what lies ahead",
        fits=lambda shape: len(shape) == 2 and shape[0] == shape[1] > 1,
        make=lambda shape: np.triu(np.ones(shape, dtype=np.float32), 1),
        lines=lambda shape: [f"buffer = torch.ones({shape!r}).triu(1)"],
        fills=False,
        # A masked linear layer (MADE) has a mask of its own, and means it.
        inside="att",
    ),
    "inverse-frequencies": _INVERSE_FREQUENCIES,
    # What Meta's code keeps of them is called freqs, as learned ones of others are.
    "rope-frequencies": replace(_INVERSE_FREQUENCIES, leaves=("freqs",), inside="rope"),
    # No name tells these: only code that holds them, looked at when the target was built, does (`code_runner.held_in`).
    "lower-mask": Computed(
        leaves=(),
        what="the causal mask that the target's own code holds",
        fits=lambda shape: len(shape) > 1,
        make=_lower,
        lines=lambda shape: [f"buffer = torch.ones({shape[-2:]!r}).tril().reshape({shape!r})"],
    ),
    "upper-mask": Computed(
        leaves=(),
        what="the mask of what lies ahead that the target's own code holds",
        fits=lambda shape: len(shape) > 1,
        make=_upper,
        lines=lambda shape: [f"buffer = torch.ones({shape[-2:]!r}).triu(1).reshape({shape!r})"],
    ),
    "infinite-mask": Computed(
        leaves=(),
        what="the mask of what lies ahead that the target's own code holds",
        fits=lambda shape: len(shape) > 1,
        make=_infinite,
        lines=lambda shape: [
            f'buffer = torch.full({shape[-2:]!r}, float("-inf")).triu(1).reshape({shape!r})',
        ],
    ),
    "sinusoid": Computed(
        leaves=(),
        what="the sines and cosines of positions that the target's own code computes",
        fits=lambda shape: len(shape) > 1 and shape[-1] % 2 == 0,
        make=_waves,
        lines=_wave_lines,
    ),
}
