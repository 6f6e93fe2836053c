"""Numbers of one element type in another, as torch's own casts on a CPU round them; no torch import.

Every number comes out as torch's bit for bit: rounded to nearest even, what is too large becomes infinite, and float64
goes to the 16-bit types by way of float32. A NaN stays one; its further bits differ in torch from one processor to the
next, so here they are always the same: bfloat16's is 0x7FC0, float16 keeps sign and first bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.checkpoint.dtypes import DTYPES
from inspector.errors import ReadError

_QUIET = np.uint16(0x0200)
_NAN = np.uint16(0x7FC0)
_NO_NUMBERS = ("qint", "quint", "bits", "float4", "complex32", "bcomplex32")


def has_numbers(dtype: str) -> bool:
    """Whether each element of this type is one number, real or complex."""
    return DTYPES[dtype].native or not dtype.startswith(_NO_NUMBERS)


def numbers_of(raw: NDArray[np.generic], dtype: str) -> NDArray[np.generic]:
    """Raw elements as numbers that numpy counts with, exactly: float32 for the types it has not.

    Raises ReadError for types that have no one number per element.
    """
    if DTYPES[dtype].native:
        return raw
    if not has_numbers(dtype):
        raise ReadError(f"Elements of type {dtype} are no single numbers.")
    return to_float32(raw, dtype)


def cast(raw: NDArray[np.generic], dtype: str, wanted: str) -> NDArray[np.generic]:
    """Raw elements of one type as raw elements of another, same shape; the array itself where the type is the same.

    Raises ReadError for types that cannot be computed with, and for 8-bit floats as the wanted one.
    """
    if dtype == wanted:
        return raw
    held = numbers_of(raw, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if wanted == "float16":
            return _half(held.astype(np.float32, copy=False))
        if wanted == "bfloat16":
            return _bfloat16(held.astype(np.float32, copy=False))
        if not DTYPES[wanted].native:
            raise ReadError(f"Nothing is cast to {wanted} here.")
        return held.astype(DTYPES[wanted].raw)


def common_type(dtypes: tuple[str, ...]) -> str:
    """What torch joins tensors of these types in. Raises ReadError where not all of them are real floats."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    for wide in ("float64", "float32"):
        if wide in dtypes and set(dtypes) <= {"float64", "float32", "float16", "bfloat16"}:
            return wide
    if set(dtypes) == {"float16", "bfloat16"}:
        return "float32"
    raise ReadError(f"Tensors of the types {' and '.join(dict.fromkeys(dtypes))} are not joined.")


def _half(held: NDArray[np.float32]) -> NDArray[np.generic]:
    made = held.astype(np.float16)
    bits = made.view(np.uint16)
    # What numpy leaves signalling, processors make quiet.
    bits[np.isnan(held)] |= _QUIET
    return made


def _bfloat16(held: NDArray[np.float32]) -> NDArray[np.uint16]:
    bits = np.ascontiguousarray(held).view(np.uint32).reshape(held.shape)
    # To nearest, ties to even: the half below is added, and one more where the kept part is odd.
    carry = (bits >> np.uint32(16)) & np.uint32(1)
    made = ((bits + (carry + np.uint32(0x7FFF))) >> np.uint32(16)).astype(np.uint16)
    made[np.isnan(held)] = _NAN
    return made
