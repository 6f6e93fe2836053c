"""ggml's blocks of 32 weights with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4, and NVFP4 of 4 times 16."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.weights.decoded.ggml_blocks import (
    FP4_LEVELS,
    HALF,
    IQ4_LEVELS,
    Blocks,
    BlockType,
    Values,
    nibbles,
    scaled,
    structure,
    widened,
)

# E8M0, halved since the levels are doubled: 2^(e - 128); ggml knows no NaN here.
_E8M0_HALF = np.ldexp(1.0, np.arange(256) - 128).astype(np.float32)


def _ue4m3_half() -> NDArray[np.float32]:
    """E4M3 without a sign, halved likewise; NaN counts as zero, and the top bit is not looked at."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    values = np.where(exponent == 0, fraction / 512, np.ldexp(1 + fraction / 8, exponent - 7)) / 2
    values[0x7F] = 0.0
    return values.astype(np.float32)


_UE4M3_HALF = _ue4m3_half()


def _q4_0(blocks: Blocks, out: Values) -> None:
    codes = nibbles(blocks["qs"], 16).view(np.int8)
    codes -= 8
    scaled(codes, widened(blocks["d"]), out)


def _q4_1(blocks: Blocks, out: Values) -> None:
    scaled(nibbles(blocks["qs"], 16), widened(blocks["d"]), out)
    out += widened(blocks["m"])


def _fifth_bits(blocks: Blocks) -> NDArray[np.uint8]:
    codes = nibbles(blocks["qs"], 16)
    codes |= np.unpackbits(blocks["qh"], axis=1, bitorder="little") << np.uint8(4)
    return codes


def _q5_0(blocks: Blocks, out: Values) -> None:
    codes = _fifth_bits(blocks).view(np.int8)
    codes -= 16
    scaled(codes, widened(blocks["d"]), out)


def _q5_1(blocks: Blocks, out: Values) -> None:
    scaled(_fifth_bits(blocks), widened(blocks["d"]), out)
    out += widened(blocks["m"])


def _q8_0(blocks: Blocks, out: Values) -> None:
    np.multiply(blocks["qs"], widened(blocks["d"]), out=out)


def _iq4_nl(blocks: Blocks, out: Values) -> None:
    scaled(np.take(IQ4_LEVELS, nibbles(blocks["qs"], 16)), widened(blocks["d"]), out)


def _mxfp4(blocks: Blocks, out: Values) -> None:
    scaled(np.take(FP4_LEVELS, nibbles(blocks["qs"], 16)), _E8M0_HALF[blocks["e"]][:, None], out)


def _nvfp4(blocks: Blocks, out: Values) -> None:
    scaled(np.take(FP4_LEVELS, nibbles(blocks["qs"], 8)), _UE4M3_HALF[blocks["d"]], out)


SIMPLE_TYPES = (
    BlockType(name="Q4_0", weights=32, fields=structure(("d", HALF), ("qs", "u1", 16)), decode=_q4_0, big_endian=True),
    BlockType(name="Q4_1", weights=32, fields=structure(("d", HALF), ("m", HALF), ("qs", "u1", 16)), decode=_q4_1),
    BlockType(name="Q5_0", weights=32, fields=structure(("d", HALF), ("qh", "u1", 4), ("qs", "u1", 16)), decode=_q5_0),
    BlockType(
        name="Q5_1", weights=32, fields=structure(("d", HALF), ("m", HALF), ("qh", "u1", 4), ("qs", "u1", 16)),
        decode=_q5_1,
    ),
    BlockType(name="Q8_0", weights=32, fields=structure(("d", HALF), ("qs", "i1", 32)), decode=_q8_0, big_endian=True),
    BlockType(name="IQ4_NL", weights=32, fields=structure(("d", HALF), ("qs", "u1", 16)), decode=_iq4_nl),
    BlockType(
        name="MXFP4", weights=32, fields=structure(("e", "u1"), ("qs", "u1", 16)), decode=_mxfp4, big_endian=True
    ),
    BlockType(name="NVFP4", weights=64, fields=structure(("d", "u1", 4), ("qs", "u1", 32)), decode=_nvfp4),
)  # fmt: skip
