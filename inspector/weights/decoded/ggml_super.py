"""ggml's K-quants: blocks of 256 weights in sub-blocks, whose scales are small integers times one scale of all.

Q2_K, Q4_K and Q5_K have a minimum beside each scale; Q3_K and Q6_K are symmetric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.decoded.ggml_blocks import (
    HALF,
    Blocks,
    BlockType,
    Values,
    lowered,
    nibbles,
    one_bits,
    scaled,
    structure,
    two_bits,
    widened,
)


def _q2_k(blocks: Blocks, out: Values) -> None:
    both = blocks["scales"]  # (n, 16): scale in the lower half, minimum in the upper.
    scaled(two_bits(blocks["qs"]), widened(blocks["d"]) * (both & 15), out)
    lowered(out, widened(blocks["dmin"]) * (both >> 4))


def _q3_k(blocks: Blocks, out: Values) -> None:
    codes = two_bits(blocks["qs"])
    # A bit that is set means that nothing is taken off.
    codes |= one_bits(blocks["hmask"]) << np.uint8(2)
    numbers = codes.view(np.int8)
    numbers -= 4
    scaled(numbers, widened(blocks["d"]) * _six_bits(blocks["scales"]), out)


def _six_bits(raw: NDArray[np.uint8]) -> NDArray[np.int8]:
    """(n, 12) bytes -> (n, 16) scales from -32: 4 low bits in the first 8 bytes, 2 high bits in the last 4."""
    low = nibbles(raw[:, :8], 8)
    high = np.concatenate([raw[:, 8:] >> np.uint8(2 * i) for i in range(4)], axis=1) & 3
    scales: NDArray[np.int8] = (low | high << np.uint8(4)).view(np.int8) - np.int8(32)
    return scales


def _scales_and_minima(raw: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """(n, 12) bytes -> (n, 8) each, of 6 bits: the first four whole in a byte, the last four put together."""
    first, second, low = raw[:, :4], raw[:, 4:8], raw[:, 8:]
    scales = np.concatenate([first & 63, low & 15 | first >> 6 << 4], axis=1)
    minima = np.concatenate([second & 63, low >> 4 | second >> 6 << 4], axis=1)
    return scales, minima


def _q4_k(blocks: Blocks, out: Values) -> None:
    scales, minima = _scales_and_minima(blocks["scales"])
    scaled(nibbles(blocks["qs"], 32), widened(blocks["d"]) * scales, out)
    lowered(out, widened(blocks["dmin"]) * minima)


def _q5_k(blocks: Blocks, out: Values) -> None:
    scales, minima = _scales_and_minima(blocks["scales"])
    codes = nibbles(blocks["qs"], 32)
    codes |= one_bits(blocks["qh"]) << np.uint8(4)
    scaled(codes, widened(blocks["d"]) * scales, out)
    lowered(out, widened(blocks["dmin"]) * minima)


def _q6_k(blocks: Blocks, out: Values) -> None:
    codes = nibbles(blocks["ql"], 64)
    codes |= two_bits(blocks["qh"]) << np.uint8(4)
    numbers = codes.view(np.int8)
    numbers -= 32
    scaled(numbers, widened(blocks["d"]) * blocks["scales"], out)


SUPER_TYPES = (
    BlockType(
        name="Q2_K", weights=256, decode=_q2_k,
        fields=structure(("scales", "u1", 16), ("qs", "u1", 64), ("d", HALF), ("dmin", HALF)),
    ),
    BlockType(
        name="Q3_K", weights=256, decode=_q3_k,
        fields=structure(("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), ("d", HALF)),
    ),
    BlockType(
        name="Q4_K", weights=256, decode=_q4_k, big_endian=True,
        fields=structure(("d", HALF), ("dmin", HALF), ("scales", "u1", 12), ("qs", "u1", 128)),
    ),
    BlockType(
        name="Q5_K", weights=256, decode=_q5_k,
        fields=structure(("d", HALF), ("dmin", HALF), ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", 128)),
    ),
    BlockType(
        name="Q6_K", weights=256, decode=_q6_k, big_endian=True,
        fields=structure(("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", HALF)),
    ),
)  # fmt: skip
