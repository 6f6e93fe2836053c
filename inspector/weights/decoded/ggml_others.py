"""ggml's further blocks of 256 weights: IQ4_XS with levels of a table, TQ1_0 and TQ2_0 with three values each.

The other IQ types look codes up in grids of hundreds of points, which are not kept here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.decoded.ggml_blocks import (
    HALF,
    IQ4_LEVELS,
    Blocks,
    BlockType,
    Values,
    nibbles,
    scaled,
    structure,
    two_bits,
    widened,
)


def _iq4_xs(blocks: Blocks, out: Values) -> None:
    low = np.stack([blocks["scales_l"] & 15, blocks["scales_l"] >> 4], axis=2).reshape(len(blocks), 8)
    high = blocks["scales_h"][:, None] >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    scales = (low | high.astype(np.uint8) << np.uint8(4)).view(np.int8) - np.int8(32)
    scaled(np.take(IQ4_LEVELS, nibbles(blocks["qs"], 16)), widened(blocks["d"]) * scales, out)


# The five base-3 digits of a byte, which holds them as a fraction of 256: (256, 5), from -1.
_DIGITS = ((((np.arange(256)[:, None] * 3 ** np.arange(5)) & 255) * 3 >> 8) - 1).astype(np.int8)


def _digits(raw: NDArray[np.uint8], count: int) -> NDArray[np.int8]:
    """(n, k) bytes -> (n, count * k): the first digit of each, then the second, and so on."""
    found: NDArray[np.int8] = np.take(_DIGITS[:, :count], raw, axis=0).swapaxes(1, 2).reshape(len(raw), -1)
    return found


def _tq1_0(blocks: Blocks, out: Values) -> None:
    head, tail = blocks["qs"][:, :32], blocks["qs"][:, 32:]
    numbers = np.concatenate([_digits(head, 5), _digits(tail, 5), _digits(blocks["qh"], 4)], axis=1)
    scaled(numbers, widened(blocks["d"]), out)


def _tq2_0(blocks: Blocks, out: Values) -> None:
    numbers = two_bits(blocks["qs"]).view(np.int8)
    numbers -= 1
    scaled(numbers, widened(blocks["d"]), out)


OTHER_TYPES = (
    BlockType(
        name="IQ4_XS", weights=256, decode=_iq4_xs,
        fields=structure(("d", HALF), ("scales_h", "<u2"), ("scales_l", "u1", 4), ("qs", "u1", 128)),
    ),
    BlockType(
        name="TQ1_0", weights=256, decode=_tq1_0, fields=structure(("qs", "u1", 48), ("qh", "u1", 4), ("d", HALF))
    ),
    BlockType(name="TQ2_0", weights=256, decode=_tq2_0, fields=structure(("qs", "u1", 64), ("d", HALF))),
)  # fmt: skip
