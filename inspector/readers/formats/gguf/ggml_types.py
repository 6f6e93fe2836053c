"""Element types of ggml: how many weights a block has and how many bytes it takes.

Source: ggml/src/ggml-common.h (the block structures) and ggml/include/ggml.h (the numbers). Types that llama.cpp has
removed keep their number and are named as removed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GgmlType:
    """name: ggml's. block: weights in a block; nbytes: of a block. dtype: ours, "" for quantised blocks."""

    name: str
    block: int
    nbytes: int
    dtype: str = ""
    removed: bool = False

    @property
    def note(self) -> str:
        """What the blocks are, "" for plain numbers."""
        if self.dtype:
            return ""
        gone = ", a type that llama.cpp has removed" if self.removed else ""
        each = f"{self.nbytes / self.block:.6g}"
        return f"{self.name}: blocks of {self.block} weights in {self.nbytes} bytes, {each} bytes a weight{gone}"


def _plain(name: str, nbytes: int, dtype: str) -> GgmlType:
    return GgmlType(name=name, block=1, nbytes=nbytes, dtype=dtype)


def _blocks(name: str, block: int, nbytes: int, *, removed: bool = False) -> GgmlType:
    return GgmlType(name=name, block=block, nbytes=nbytes, removed=removed)


# The sums follow the block structures: scales and minima (2 bytes each), high bits, low bits, scales of sub-blocks.
GGML_TYPES: dict[int, GgmlType] = {
    0: _plain("F32", 4, "float32"),
    1: _plain("F16", 2, "float16"),
    2: _blocks("Q4_0", 32, 2 + 16),
    3: _blocks("Q4_1", 32, 2 + 2 + 16),
    6: _blocks("Q5_0", 32, 2 + 4 + 16),
    7: _blocks("Q5_1", 32, 2 + 2 + 4 + 16),
    8: _blocks("Q8_0", 32, 2 + 32),
    9: _blocks("Q8_1", 32, 2 + 2 + 32),
    10: _blocks("Q2_K", 256, 16 + 64 + 2 + 2),
    11: _blocks("Q3_K", 256, 32 + 64 + 12 + 2),
    12: _blocks("Q4_K", 256, 2 + 2 + 12 + 128),
    13: _blocks("Q5_K", 256, 2 + 2 + 12 + 32 + 128),
    14: _blocks("Q6_K", 256, 128 + 64 + 16 + 2),
    15: _blocks("Q8_K", 256, 4 + 256 + 32),
    16: _blocks("IQ2_XXS", 256, 2 + 64),
    17: _blocks("IQ2_XS", 256, 2 + 64 + 8),
    18: _blocks("IQ3_XXS", 256, 2 + 96),
    19: _blocks("IQ1_S", 256, 2 + 32 + 16),
    20: _blocks("IQ4_NL", 32, 2 + 16),
    21: _blocks("IQ3_S", 256, 2 + 64 + 8 + 32 + 4),
    22: _blocks("IQ2_S", 256, 2 + 64 + 8 + 8),
    23: _blocks("IQ4_XS", 256, 2 + 2 + 4 + 128),
    24: _plain("I8", 1, "int8"),
    25: _plain("I16", 2, "int16"),
    26: _plain("I32", 4, "int32"),
    27: _plain("I64", 8, "int64"),
    28: _plain("F64", 8, "float64"),
    29: _blocks("IQ1_M", 256, 32 + 16 + 8),
    30: _plain("BF16", 2, "bfloat16"),
    31: _blocks("Q4_0_4_4", 32, 2 + 16, removed=True),
    32: _blocks("Q4_0_4_8", 32, 2 + 16, removed=True),
    33: _blocks("Q4_0_8_8", 32, 2 + 16, removed=True),
    34: _blocks("TQ1_0", 256, 48 + 4 + 2),
    35: _blocks("TQ2_0", 256, 64 + 2),
    36: _blocks("IQ4_NL_4_4", 32, 2 + 16, removed=True),
    37: _blocks("IQ4_NL_4_8", 32, 2 + 16, removed=True),
    38: _blocks("IQ4_NL_8_8", 32, 2 + 16, removed=True),
    39: _blocks("MXFP4", 32, 1 + 16),
    40: _blocks("NVFP4", 64, 4 + 32),
    41: _blocks("Q1_0", 128, 2 + 16),
}
