"""What a type of ggml's blocks is, and what several of them share.

Source of all layouts: ggml/src/ggml-common.h (the structures) and the reference decoders of ggml/src/ggml-quants.c,
whose order of rounding is kept, so that every float32 is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Blocks: TypeAlias = NDArray[Any]
Values: TypeAlias = NDArray[np.float32]

HALF = "<f2"
# 4-bit codes that stand for unevenly spaced levels: kvalues_iq4nl, and kvalues_mxfp4 (E2M1 doubled).
IQ4_LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
FP4_LEVELS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockType:
    """weights: in a block. fields: the block as a structure, little-endian, without padding.

    decode(blocks, out): blocks (n,) of `fields`; writes out (n, weights) float32.
    big_endian: gguf-py's converter knows how such a file is laid out: halves swapped, all else as it is.
    """

    name: str
    weights: int
    fields: np.dtype[Any]
    decode: Callable[[Blocks, Values], None]
    big_endian: bool = False

    @property
    def nbytes(self) -> int:
        """Of a block."""
        return self.fields.itemsize


def structure(*parts: tuple[str, str] | tuple[str, str, int]) -> np.dtype[Any]:
    """A structure of these, one after the other."""
    return np.dtype([*parts])


def widened(half: NDArray[Any]) -> NDArray[np.float32]:
    """(n,) halves -> (n, 1) float32."""
    return half.astype(np.float32)[:, None]


def nibbles(raw: NDArray[np.uint8], run: int) -> NDArray[np.uint8]:
    """(n, k) bytes -> (n, 2 k) codes: of each run of bytes first all lower halves, then all upper ones."""
    grouped = raw.reshape(len(raw), -1, run)
    codes = np.empty((len(raw), grouped.shape[1], 2, run), np.uint8)
    np.bitwise_and(grouped, 15, out=codes[:, :, 0])
    np.right_shift(grouped, 4, out=codes[:, :, 1])
    return codes.reshape(len(raw), -1)


def two_bits(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, k) bytes -> (n, 4 k) codes of two bits: of each 32 bytes all lowest ones, then the next, and so on."""
    grouped = raw.reshape(len(raw), -1, 32)
    codes = np.empty((len(raw), grouped.shape[1], 4, 32), np.uint8)
    for i in range(4):
        np.right_shift(grouped, 2 * i, out=codes[:, :, i])
    codes &= 3
    return codes.reshape(len(raw), -1)


def one_bits(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n, 32) bytes -> (n, 256) single bits: all lowest ones first."""
    codes = np.empty((len(raw), 8, 32), np.uint8)
    for i in range(8):
        np.right_shift(raw, i, out=codes[:, i])
    codes &= 1
    return codes.reshape(len(raw), -1)


def scaled(codes: NDArray[Any], scales: NDArray[np.float32], out: Values) -> None:
    """codes (n, weights), scales (n, sub-blocks): each sub-block's codes times its scale."""
    shape = (len(codes), scales.shape[1], -1)
    np.multiply(codes.reshape(shape), scales[:, :, None], out=out.reshape(shape))


def lowered(out: Values, minima: NDArray[np.float32]) -> None:
    """minima (n, sub-blocks): taken off each weight of the sub-block."""
    view = out.reshape(len(out), minima.shape[1], -1)
    view -= minima[:, :, None]
