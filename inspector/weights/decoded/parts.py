"""Complex tensors: real and imaginary parts as one run of numbers, since complex numbers have no order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import why_unreadable
from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes
from inspector.weights.report import Decoding, NumberKind

# The type of a part, and numpy's name of its bits.
_PARTS = {
    "complex128": ("float64", "float64"),
    "complex64": ("float32", "float32"),
    "complex32": ("float16", "uint16"),
    "bcomplex32": ("bfloat16", "uint16"),
}


def _claims(tensor: TensorInfo) -> bool:
    return tensor.dtype in _PARTS and tensor.layout == "strided"


def _decode(place: TensorBytes) -> Decoded:
    tensor = place.tensor
    why = why_unreadable(tensor)
    if why:
        raise place.refusal(why)
    dtype, raw = _PARTS[tensor.dtype]
    # Rows of a matrix are rows of its parts; a vector has none.
    shape = (*tensor.shape, 2) if len(tensor.shape) != 1 else (2 * tensor.shape[0],)
    return Decoded(
        dtype=dtype,
        shape=shape,
        chunks=_parts(place, raw),
        decoding=Decoding(kind=NumberKind.PARTS, dtype=dtype, says="real and imaginary parts"),
        per_element=2,
    )


def _parts(place: TensorBytes, raw: str) -> Iterator[NDArray[Any]]:
    for chunk in place.stored(place.tensor, max(1, place.at_once // 2)):
        yield np.ascontiguousarray(chunk).reshape(-1).view(raw)


DECODER = Decoder(id="complex", claims=_claims, decode=_decode)
