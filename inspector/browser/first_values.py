"""The first numbers of a tensor, read when somebody asks for them; without NumPy."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from inspector.errors import ReadError
from inspector.render.visible import visible
from inspector.units import counted, human_shape

if TYPE_CHECKING:
    from inspector.checkpoint.types import Checkpoint, TensorInfo

_FIRST = 24


def first_values(checkpoint: Checkpoint, chosen: int, row: int) -> dict[str, Any]:
    """chosen, row: place in what `views.tensors` listed. Raises ReadError where there is no one number per element."""
    sets = [state.tensors for state in checkpoint.state_dicts] or [checkpoint.tensors]
    tensor = sets[chosen][row]
    values = _values(checkpoint, tensor)
    left = tensor.numel - len(values)
    return {
        "name": visible(tensor.name),
        "line": f"{human_shape(tensor.shape)} of {tensor.dtype}, {counted(tensor.numel, 'element')}",
        "values": values,
        "rest": f"and {left:,} more, in row-major order" if left > 0 else "",
        "note": visible(tensor.note),
    }


def _values(checkpoint: Checkpoint, tensor: TensorInfo) -> list[str]:
    from inspector.checkpoint.data import iter_chunks
    from inspector.checkpoint.dtypes import DTYPES

    dtype, encoding = DTYPES.get(tensor.dtype), tensor.encoding
    if dtype is None or tensor.layout != "strided" or (encoding is not None and (encoding.scheme or encoding.parts)):
        raise ReadError(f"{tensor.name} is stored in a way that is decoded in the app alone.")
    decode = None if dtype.native else _DECODED.get(tensor.dtype)
    if decode is None and not dtype.native:
        raise ReadError(f"Elements of type {tensor.dtype} are decoded in the app alone.")
    chunk = next(iter(iter_chunks(checkpoint, tensor, count=_FIRST)), None)
    if chunk is None:
        return []
    return [_shown(decode(one) if decode else one, short=dtype.bits <= 32) for one in chunk.reshape(-1).tolist()]


def _shown(value: object, *, short: bool) -> str:
    """The fewest digits that name it among the numbers of its type."""
    if not isinstance(value, float) or not short or not math.isfinite(value):
        return str(value)
    told = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next((text for text in told if struct.pack("<f", float(text)) == struct.pack("<f", value)), str(value))


def _bfloat16(bits: int) -> float:
    value: float = struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0]
    return value


def _float8_e5m2(bits: int) -> float:
    # The upper half of a 16-bit float.
    value: float = struct.unpack("<e", (bits << 8).to_bytes(2, "little"))[0]
    return value


def _float8_e4m3fn(bits: int) -> float:
    sign, exponent, fraction = -1.0 if bits & 0x80 else 1.0, (bits >> 3) & 15, bits & 7
    if exponent == 15 and fraction == 7:
        return float("nan")
    return sign * (fraction / 8 * 2.0**-6 if not exponent else (1 + fraction / 8) * 2.0 ** (exponent - 7))


def all_values(checkpoint: Checkpoint, tensor: TensorInfo) -> Iterator[float]:
    """Of a tensor of plain floats, one after another."""
    from inspector.checkpoint.data import iter_chunks

    decode = _DECODED.get(tensor.dtype, float)
    for chunk in iter_chunks(checkpoint, tensor):
        yield from map(decode, chunk.reshape(-1).tolist())


_DECODED = {"bfloat16": _bfloat16, "float8_e5m2": _float8_e5m2, "float8_e4m3fn": _float8_e4m3fn}
