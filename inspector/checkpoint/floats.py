"""The 8-bit floats as tables of 256 float32 values, after the OCP and FNUZ definitions.

Sources: "OCP 8-bit Floating Point Specification (OFP8)" rev. 1.0; Noune 2022 (FNUZ: bias one larger, no infinities, no
negative zero, NaN is 0x80); "OCP Microscaling Formats" v1.0 (E8M0: powers of two, 0xFF is NaN).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def float8_table(name: str) -> NDArray[np.float32]:
    """(256,) float32: the value of every bit pattern of a torch float8 type."""
    codes = np.arange(256)
    if name == "float8_e8m0fnu":
        values = np.ldexp(1.0, codes - 127)
        values[255] = np.nan
        return _frozen(values)
    exponent_bits, mantissa_bits, bias = {
        "float8_e4m3fn": (4, 3, 7),
        "float8_e5m2": (5, 2, 15),
        "float8_e4m3fnuz": (4, 3, 8),
        "float8_e5m2fnuz": (5, 2, 16),
    }[name]
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    normal = np.ldexp(1.0 + fraction, exponent - bias)
    subnormal = np.ldexp(fraction, 1 - bias)
    values = sign * np.where(exponent == 0, subnormal, normal)
    if name.endswith("fnuz"):
        values[0x80] = np.nan
    elif name == "float8_e4m3fn":
        values[[0x7F, 0xFF]] = np.nan
    else:
        values[[0x7C, 0xFC]] = np.inf, -np.inf
        values[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    return _frozen(values)


def _frozen(values: NDArray[np.float64]) -> NDArray[np.float32]:
    table = values.astype(np.float32)
    table.flags.writeable = False
    return table
