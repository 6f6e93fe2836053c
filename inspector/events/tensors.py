"""TensorFlow's TensorProto as numbers or byte strings, and numbers as a TensorProto.

Source: tensorflow/core/framework/tensor.proto and types.proto.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.events.wire import fields, message, varint
from inspector.readers.formats.onnx.protobuf import BYTES, FIXED32, FIXED64, VARINT, BadWire, signed, unpack_varints

STRING = 7
_DOUBLE, _BFLOAT16 = 2, 14
# The numbers of DataType -> as they lie in tensor_content, little-endian.
_TYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "<u1", 5: "<i2", 6: "<i1", 9: "<i8", 10: "?", 14: "<u2", 17: "<u2", 19: "<f2",
    22: "<u4", 23: "<u8",
}  # fmt: skip
# Fields of values: float_val, double_val; half_val holds bits; the rest are varints, signed or not.
_FLOATS = {5: "<f4", 6: "<f8"}
_HALF_BITS = 13
_INTEGERS = {7, 10, 11, 16, 17}
_UNSIGNED = {16, 17}
#: Numbers of one tensor that are decoded: a curve at ten thousand thresholds has 60,000.
MOST_NUMBERS = 1 << 18
_MOST_STRINGS = 1 << 12
# Fields of values; writers pack theirs into one.
_MOST_FIELDS = 1 << 15
_MOST_DIMENSIONS = 16


@dataclass(slots=True)
class Tensor:
    """What a message says, undecoded. content, strings: (start, end) in the data. values: (field number, wire type,
    start or value, end) of repeated ones."""

    dtype: int = 0
    shape: list[int] = field(default_factory=list)
    content: tuple[int, int] | None = None
    strings: list[tuple[int, int]] = field(default_factory=list)
    values: list[tuple[int, int, int, int]] = field(default_factory=list)
    too_many: bool = False


def read_tensor(data: bytes, at: int, end: int) -> Tensor:
    """The message at .. end. Raises BadWire."""
    tensor = Tensor()
    for number, wire, start, stop in fields(data, at, end):
        if number == 1 and wire == VARINT:
            tensor.dtype = start
        elif number == 2 and wire == BYTES:
            tensor.shape = _read_shape(data, start, stop)
        elif number == 4 and wire == BYTES:
            tensor.content = start, stop
        elif number == 8 and wire == BYTES:
            tensor.too_many = tensor.too_many or len(tensor.strings) >= _MOST_STRINGS
            if not tensor.too_many:
                tensor.strings.append((start, stop))
        elif number in _FLOATS or number in _INTEGERS or number == _HALF_BITS:
            tensor.too_many = tensor.too_many or len(tensor.values) >= _MOST_FIELDS
            if not tensor.too_many:
                tensor.values.append((number, wire, start, stop))
    return tensor


def _read_shape(data: bytes, at: int, end: int) -> list[int]:
    shape = []
    for number, wire, start, stop in fields(data, at, end):
        if number == 2 and wire == BYTES:
            size = 0
            for inner, kind, value, _ in fields(data, start, stop):
                if inner == 1 and kind == VARINT:
                    size = signed(value)
            shape.append(size)
            if len(shape) > _MOST_DIMENSIONS:
                raise BadWire(f"a tensor has more than {_MOST_DIMENSIONS} dimensions")
    return shape


def numbers_of(data: bytes, tensor: Tensor) -> NDArray[np.float64] | None:
    """The values in the tensor's shape; None where it has none of these types, too many, or another count than its
    shape says. As TensorFlow has it, the last of too few values stands for those that are missing."""
    kind = _TYPES.get(tensor.dtype)
    numel = math.prod(tensor.shape)
    if kind is None or tensor.too_many or any(not 0 <= n <= MOST_NUMBERS for n in (*tensor.shape, numel)):
        return None
    if tensor.content is not None and tensor.content[1] > tensor.content[0]:
        start, end = tensor.content
        if end - start != numel * np.dtype(kind).itemsize:
            return None
        flat = _widened(np.frombuffer(data, kind, numel, start), tensor.dtype)
    else:
        found = _listed(data, tensor)
        if found is None or len(found) > numel or (not len(found) and numel):
            return None
        flat = np.concatenate([found, np.full(numel - len(found), found[-1] if len(found) else 0.0)])
    return flat.reshape(tensor.shape)


def _widened(raw: NDArray[np.generic], dtype: int) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return (to_float32(raw, "bfloat16") if dtype == _BFLOAT16 else raw).astype(np.float64)


def _listed(data: bytes, tensor: Tensor) -> NDArray[np.float64] | None:
    """What the *_val fields hold, single or packed."""
    parts: list[NDArray[np.float64]] = []
    room = MOST_NUMBERS
    for number, wire, start, end in tensor.values:
        kind = _FLOATS.get(number)
        if kind is not None and wire in (FIXED32, FIXED64, BYTES):
            size = np.dtype(kind).itemsize
            if (end - start) % size or (end - start) // size > room:
                return None
            part = np.frombuffer(data, kind, (end - start) // size, start).astype(np.float64)
        elif kind is None and wire in (VARINT, BYTES):
            if wire == BYTES and end - start > 10 * room:
                return None
            whole = [start] if wire == VARINT else list(unpack_varints(data[start:end]))
            if number == _HALF_BITS:
                bits = np.array([value & 0xFFFF for value in whole], np.uint16)
                part = _widened(bits if tensor.dtype == _BFLOAT16 else bits.view(np.float16), tensor.dtype)
            else:
                part = np.array([v if number in _UNSIGNED else signed(v) for v in whole], np.float64)
        else:
            return None
        room -= len(part)
        if room < 0:
            return None
        parts.append(part)
    return np.concatenate(parts) if parts else np.zeros(0)


def doubles(values: NDArray[np.float64]) -> bytes:
    """The parts of a TensorProto of float64: its fields, without a number of its own."""
    content = np.ascontiguousarray(values, "<f8").tobytes()
    return varint(1, _DOUBLE) + shape_message(2, values.shape) + message(4, content)


def strings(values: list[bytes], *, scalar: bool = False) -> bytes:
    """The parts of a TensorProto of byte strings."""
    shape = () if scalar else (len(values),)
    return varint(1, STRING) + shape_message(2, shape) + b"".join(message(8, value) for value in values)


def shape_message(number: int, shape: tuple[int, ...]) -> bytes:
    """A field of a TensorShapeProto; -1 for a size that is not known."""
    return message(number, *(message(2, varint(1, size)) for size in shape))
