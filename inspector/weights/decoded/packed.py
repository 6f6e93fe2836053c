"""Elements of two or four bits, several to a byte, the first in the lowest bits: each has its place in a table.

Sources: OCP Microscaling Formats v1.0, 5.3.3 (E2M1); torch/headeronly/util/Float4_e2m1fn_x2.h; onnx/docs (IR types
INT4, UINT4, FLOAT4E2M1, INT2, UINT2: packed first element lowest).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import why_unreadable
from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes
from inspector.weights.report import Decoding, NumberKind

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
_TORCH_FLOAT4 = "float4_e2m1fn_x2"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """values: of each bit pattern, 4 or 16 of them. dtype: the type that they are measured in."""

    says: str
    dtype: str
    values: tuple[float, ...]

    @property
    def each(self) -> int:
        """Elements in a byte."""
        return 2 if len(self.values) == 16 else 4

    def table(self) -> NDArray[Any]:
        """(256, each): the elements of every byte."""
        bits = 8 // self.each
        codes = (np.arange(256)[:, None] >> (bits * np.arange(self.each))) & ((1 << bits) - 1)
        table: NDArray[Any] = np.array(self.values, self.dtype)[codes]
        return table


def _signed(bits: int) -> tuple[float, ...]:
    half = 1 << (bits - 1)
    return (*range(half), *range(-half, 0))


_KINDS = {
    _TORCH_FLOAT4: _Kind(says="4-bit floats (E2M1), two to an element", dtype="float32", values=E2M1),
    "FLOAT4E2M1": _Kind(says="4-bit floats (E2M1)", dtype="float32", values=E2M1),
    "UINT4": _Kind(says="4-bit integers", dtype="uint8", values=tuple(range(16))),
    "INT4": _Kind(says="signed 4-bit integers", dtype="int8", values=_signed(4)),
    "UINT2": _Kind(says="2-bit integers", dtype="uint8", values=tuple(range(4))),
    "INT2": _Kind(says="signed 2-bit integers", dtype="int8", values=_signed(2)),
}


def _kind(tensor: TensorInfo) -> _Kind | None:
    if tensor.dtype == _TORCH_FLOAT4 and tensor.layout == "strided":
        return _KINDS[_TORCH_FLOAT4]
    if tensor.layout == "packed_elements" and tensor.encoding is not None and len(tensor.encoding.parts) == 1:
        return _KINDS.get(tensor.encoding.scheme)
    return None


def _decode(place: TensorBytes) -> Decoded:
    tensor, kind = place.tensor, _kind(place.tensor)
    assert kind is not None
    per_element = kind.each if tensor.dtype == _TORCH_FLOAT4 else 1
    held = tensor if per_element > 1 or tensor.encoding is None else tensor.encoding.parts[0]
    why = why_unreadable(held)
    if why:
        raise place.refusal(why)
    count = tensor.numel * per_element
    if held.numel != -(-count // kind.each):
        raise place.refusal(f"{count:,} elements do not fill the {held.numel:,} bytes that the file declares for them")
    shape = tensor.shape
    if per_element > 1:
        shape = (*shape[:-1], shape[-1] * per_element) if shape else (per_element,)
    return Decoded(
        dtype=kind.dtype,
        shape=shape,
        chunks=_unpacked(place, held, kind, count),
        decoding=Decoding(
            kind=NumberKind.VALUES if kind.dtype == "float32" else NumberKind.CODES, dtype=kind.dtype, says=kind.says
        ),
        per_element=per_element,
    )


def _unpacked(place: TensorBytes, held: TensorInfo, kind: _Kind, left: int) -> Iterator[NDArray[Any]]:
    """left: elements; what fills the last byte is no element."""
    table = kind.table()
    for chunk in place.stored(held, max(1, place.at_once // kind.each)):
        numbers = np.take(table, chunk.view(np.uint8), axis=0).reshape(-1)[:left]
        left -= numbers.size
        yield numbers


DECODER = Decoder(id="packed", claims=lambda tensor: _kind(tensor) is not None, decode=_decode)
