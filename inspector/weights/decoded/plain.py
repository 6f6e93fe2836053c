"""Elements that are numbers as they are stored: floats, integers, booleans."""

from __future__ import annotations

from inspector.checkpoint.data import why_unreadable
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes


def _decode(place: TensorBytes) -> Decoded:
    tensor = place.tensor
    why = why_not_plain(tensor)
    if why:
        raise place.refusal(why)
    return Decoded(dtype=tensor.dtype, shape=tensor.shape, chunks=place.stored(tensor, place.at_once, reused=True))


def why_not_plain(tensor: TensorInfo) -> str:
    """Why the tensor has no numbers to measure, as half a sentence; "" when it has."""
    dtype = find_dtype(tensor.dtype)
    if dtype is None:
        return f"its element type {tensor.dtype} is unknown"
    reason = why_unreadable(tensor)
    if reason:
        return reason
    if not dtype.native and not dtype.floating:
        return f"its {tensor.dtype} elements are packed or quantised codes, not numbers in themselves"
    return ""


DECODER = Decoder(id="plain", claims=lambda tensor: True, decode=_decode)
