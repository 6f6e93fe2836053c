"""ONNX's TensorProto: from its fields to a tensor and where its bytes are.

Source: onnx/onnx.proto (TensorProto, "data_type" and the comments on each data field).
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major
from inspector.checkpoint.types import Encoding, Storage, TensorInfo
from inspector.readers.flat import whole_text
from inspector.readers.formats.onnx.protobuf import BYTES, FIXED32, FIXED64, VARINT, Field, Walk, signed, unpack_varints
from inspector.units import human_bytes, human_shape

_FLOATS, _INT32S, _INT64S, _DOUBLES, _UINT64S = 4, 5, 7, 10, 11
# data_type -> (ONNX's name, our dtype, bits of an element, the typed field it may be in).
ELEMENTS: dict[int, tuple[str, str, int, int]] = {
    1: ("FLOAT", "float32", 32, _FLOATS),
    2: ("UINT8", "uint8", 8, _INT32S),
    3: ("INT8", "int8", 8, _INT32S),
    4: ("UINT16", "uint16", 16, _INT32S),
    5: ("INT16", "int16", 16, _INT32S),
    6: ("INT32", "int32", 32, _INT32S),
    7: ("INT64", "int64", 64, _INT64S),
    9: ("BOOL", "bool", 8, _INT32S),
    10: ("FLOAT16", "float16", 16, _INT32S),
    11: ("DOUBLE", "float64", 64, _DOUBLES),
    12: ("UINT32", "uint32", 32, _UINT64S),
    13: ("UINT64", "uint64", 64, _UINT64S),
    14: ("COMPLEX64", "complex64", 64, _FLOATS),
    15: ("COMPLEX128", "complex128", 128, _DOUBLES),
    16: ("BFLOAT16", "bfloat16", 16, _INT32S),
    17: ("FLOAT8E4M3FN", "float8_e4m3fn", 8, _INT32S),
    18: ("FLOAT8E4M3FNUZ", "float8_e4m3fnuz", 8, _INT32S),
    19: ("FLOAT8E5M2", "float8_e5m2", 8, _INT32S),
    20: ("FLOAT8E5M2FNUZ", "float8_e5m2fnuz", 8, _INT32S),
    21: ("UINT4", "bits4x2", 4, _INT32S),
    22: ("INT4", "bits4x2", 4, _INT32S),
    23: ("FLOAT4E2M1", "bits4x2", 4, _INT32S),
    24: ("FLOAT8E8M0", "float8_e8m0fnu", 8, _INT32S),
    25: ("UINT2", "bits2x4", 2, _INT32S),
    26: ("INT2", "bits2x4", 2, _INT32S),
}
STRING = 8
# Numbers written one by one take Python a microsecond each; real files keep only small tensors like this.
_MOST_CHUNKS = 10_000
_ARRAY_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
INLINE_NBYTES = 4 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class TensorMessage:
    """A TensorProto's fields. raw: (start, bytes) of raw_data; typed: the ranges of each typed field, in order,
    typed_more: how many there are beside those that are kept."""

    name: str = ""
    code: int = 0
    dims: list[int] = field(default_factory=list)
    raw: tuple[int, int] | None = None
    typed: dict[int, list[Field]] = field(default_factory=dict)
    typed_more: int = 0
    strings: int = 0
    external: dict[str, str] = field(default_factory=dict)
    is_external: bool = False

    @property
    def nbytes(self) -> int:
        """Declared by shape and type; 0 for text and unknown types."""
        bits = ELEMENTS[self.code][2] if self.code in ELEMENTS else 0
        return (max(0, math.prod(self.dims)) * bits + 7) // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """Where a tensor's bytes are in another file. nbytes: -1 where the model does not say."""

    location: str
    offset: int
    nbytes: int


def read_message(walk: Walk, start: int, end: int, most_dimensions: int) -> TensorMessage:
    """Raises BadWire, LimitExceeded."""
    made = TensorMessage()
    for f in walk.fields(start, end):
        if f.number == 1:
            values = unpack_varints(walk.read(f, 10 * (most_dimensions + 1))) if f.wire == BYTES else [f.value]
            made.dims += [signed(v) for v in values][: most_dimensions + 1 - len(made.dims)]
        elif f.number == 2 and f.wire == VARINT:
            made.code = f.value
        elif f.number == 8 and f.wire == BYTES:
            made.name = whole_text(walk.read(f, 4096))
        elif f.number == 9 and f.wire == BYTES:
            made.raw = (f.start, f.nbytes)
        elif f.number in (_FLOATS, _INT32S, _INT64S, _DOUBLES, _UINT64S):
            chunks = made.typed.setdefault(f.number, [])
            if len(chunks) < _MOST_CHUNKS:
                chunks.append(f)
            else:
                made.typed_more += 1
        elif f.number == 6:
            made.strings += 1
        elif f.number == 13 and f.wire == BYTES:
            key, value = read_pair(walk, f)
            if key in ("location", "offset", "length"):
                made.external[key] = value
            made.is_external = True
        elif f.number == 14 and f.value == 1:
            made.is_external = True
    return made


def read_pair(walk: Walk, message: Field) -> tuple[str, str]:
    """A StringStringEntryProto."""
    key = value = ""
    for f in walk.fields(message.start, message.end):
        if f.number == 1 and f.wire == BYTES:
            key = whole_text(walk.read(f, 200))
        elif f.number == 2 and f.wire == BYTES:
            value = whole_text(walk.read(f, 4096))
    return key, value


def describe(
    message: TensorMessage, name: str, walk: Walk, budget: list[int], most_dimensions: int
) -> tuple[TensorInfo, Storage | None, External | None] | str:
    """The tensor with its storage, where there is one, or its place in another file; or why it cannot be used.

    budget: bytes of typed data that may still be decoded, one number in a list that all tensors share.
    """
    shape = tuple(message.dims)
    if message.code not in ELEMENTS:
        return f"its data type {message.code:,} is unknown"
    what, dtype, bits, typed = ELEMENTS[message.code]
    if len(shape) > most_dimensions or any(not 0 <= n < 1 << 62 for n in shape) or math.prod(shape) >= 1 << 62:
        return f"its shape {human_shape(shape)[:80]} is none"
    nbytes = message.nbytes
    info = _info(name, shape, dtype, what, bits, nbytes)
    if message.is_external:
        found = _external(message, nbytes)
        return found if isinstance(found, str) else (info, None, found)
    if message.raw is not None:
        start, n = message.raw
        if n != nbytes:
            return f"{human_shape(shape)} {what} needs {nbytes:,} bytes, its raw_data has {n:,}"
        return info, _storage(name, nbytes, start, walk), None
    chunks = message.typed.get(typed, [])
    if not chunks and nbytes:
        return "it has no data"
    if typed in (_FLOATS, _DOUBLES) and not message.typed_more:
        total = sum(f.nbytes for f in chunks)
        if total != nbytes:
            return f"{human_shape(shape)} {what} needs {nbytes:,} bytes, its data have {total:,}"
        if len(chunks) == 1:
            return info, _storage(name, nbytes, chunks[0].start, walk), None
    total = sum(max(f.nbytes, 1) for f in chunks)
    if total > budget[0] or message.typed_more:
        note = f"{human_bytes(total)} of numbers written one by one, which are not decoded here"
        return _without(info, note), None, None
    budget[0] -= total
    data = _decoded(chunks, walk, max(1, bits // 8))
    if len(data) != nbytes:
        return f"{human_shape(shape)} {what} needs {nbytes:,} bytes, its numbers make {len(data):,}"
    return info, Storage(id=name, nbytes=nbytes, present_nbytes=nbytes, offset=None, inline=data), None


def _info(name: str, shape: tuple[int, ...], dtype: str, what: str, bits: int, nbytes: int) -> TensorInfo:
    if bits >= 8:
        return TensorInfo(
            name=name, path=(name,), shape=shape, dtype=dtype, nbytes=nbytes, storage_id=name, stride=row_major(shape)
        )
    packed = TensorInfo(
        name=f"{name} (packed bytes)", path=(name, "(packed bytes)"), shape=(nbytes,), dtype="uint8", nbytes=nbytes,
        storage_id=name, stride=(1,),
    )  # fmt: skip
    return TensorInfo(
        name=name, path=(name,), shape=shape, dtype=dtype, nbytes=nbytes, storage_id=name, layout="packed_elements",
        note=f"{what}, {8 // bits} elements to a byte", encoding=Encoding(scheme=what, parts=(packed,)),
    )  # fmt: skip


def _without(info: TensorInfo, note: str) -> TensorInfo:
    return TensorInfo(
        name=info.name, path=info.path, shape=info.shape, dtype=info.dtype, nbytes=info.nbytes, storage_id=None,
        layout=info.layout, stride=info.stride, note=note,
    )  # fmt: skip


def _storage(name: str, nbytes: int, start: int, walk: Walk) -> Storage:
    present = max(0, min(nbytes, walk.cursor.size - start))
    return Storage(id=name, nbytes=nbytes, present_nbytes=present, offset=start)


def _external(message: TensorMessage, nbytes: int) -> External | str:
    location = message.external.get("location", "")
    numbers: list[int] = []
    for key, default in (("offset", "0"), ("length", "-1")):
        text = message.external.get(key, default)
        if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit() or len(text) > 19:
            return f"its external {key} {text[:40]!r} is no number"
        numbers.append(int(text))
    if not location or numbers[0] < 0:
        return "its data lie in another file, but it does not say where"
    if numbers[1] >= 0 and numbers[1] != nbytes:
        return f"its shape needs {nbytes:,} bytes, its place in another file has {numbers[1]:,}"
    return External(location=location, offset=numbers[0], nbytes=numbers[1])


def _decoded(chunks: Sequence[Field], walk: Walk, itemsize: int) -> bytes:
    """Typed fields as bytes of the elements; packed chunks and single fields may alternate."""
    parts: list[bytes] = []
    mask = (1 << 8 * itemsize) - 1
    for f in chunks:
        if f.wire in (FIXED32, FIXED64):
            parts.append(walk.read(f, 8))
            continue
        if f.wire == BYTES and f.number in (_FLOATS, _DOUBLES):
            parts.append(walk.read(f, f.nbytes))
            continue
        values = unpack_varints(walk.read(f, f.nbytes)) if f.wire == BYTES else [f.value]
        numbers = array(_ARRAY_CODES[itemsize], (v & mask for v in values))
        if sys.byteorder == "big":
            numbers.byteswap()
        parts.append(numbers.tobytes())
    return b"".join(parts)


def element_says(code: int) -> str:
    """What an input or output is made of."""
    if code == STRING:
        return "string"
    known = ELEMENTS.get(code)
    return f"type {code}" if known is None else known[1] if known[2] >= 8 else known[0].lower()


def itemsize_of(info: TensorInfo) -> int:
    """Bytes of an element, at least 1."""
    return DTYPES[info.dtype].itemsize
