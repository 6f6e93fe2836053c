"""torch's quantised tensors: the values that the codes mean, which is what `dequantize()` makes of them, to the bit.

(code - zero_point) * scale, in float32. Source: aten/src/ATen/native/quantized (AffineQuantizerBase.cpp,
cpu/kernels/QuantizedOpKernels.cpp): of a tensor with one scale that is rounded to float32 first, of one with a scale
per channel the product is taken in float64. (torch's difference of a qint32 code near the end of its range and the zero
point overflows; here it does not.) quint4x2 and quint2x4 hold 2 and 4 codes to a byte, the first lowest; rows
follow each other without a gap, and what is left over stands at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import is_contiguous, read_array, why_unreadable
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.layout import PACKED
from inspector.checkpoint.types import TensorInfo
from inspector.weights.decoded.types import Decoded, Decoder, TensorBytes
from inspector.weights.report import Decoding, NumberKind

_CODES = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32, "quint4x2": np.uint8, "quint2x4": np.uint8}
# Scales and zero points are read whole: 16 MB of each.
_MOST_CHANNELS = 1 << 21
# From so many elements of one channel in a row they are worked out run by run.
_LONG = 256

# Codes and where the first of them stands -> values.
_Meaning = Callable[[NDArray[Any], int], NDArray[np.float32]]


def _claims(tensor: TensorInfo) -> bool:
    return tensor.dtype in _CODES and tensor.layout == "strided"


def _decode(place: TensorBytes) -> Decoded:
    tensor = place.tensor
    scheme = tensor.encoding.scheme if tensor.encoding is not None else ""
    if tensor.dtype in PACKED:
        why = "" if tensor.offset == 0 and is_contiguous(tensor) else "it is a view of elements packed in bytes"
    else:
        why = why_unreadable(tensor)
    if why:
        raise place.refusal(why)
    if scheme not in ("per_tensor_affine", "per_channel_affine"):
        raise place.refusal(f"its {tensor.dtype} elements are quantised codes, and the file has no scale for them")
    per_tensor = scheme == "per_tensor_affine"
    says = f"values of {tensor.dtype} codes, {'one scale' if per_tensor else 'a scale per channel'}"
    return Decoded(
        dtype="float32",
        shape=tensor.shape,
        chunks=_values(place, _one_scale(place) if per_tensor else _scales(place)),
        decoding=Decoding(kind=NumberKind.VALUES, dtype="float32", says=says),
    )


def _values(place: TensorBytes, meaning: _Meaning) -> Iterator[NDArray[np.float32]]:
    tensor = place.tensor
    each, at = PACKED.get(tensor.dtype, 1), 0
    for chunk in place.stored(tensor, max(1, place.at_once // each)):
        codes = chunk.reshape(-1).view(_CODES[tensor.dtype])
        if each > 1:
            codes = _unpacked(codes, each)[: tensor.numel - at]
        if not codes.size:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            yield meaning(codes, at)
        at += codes.size


def _unpacked(raw: NDArray[np.uint8], each: int) -> NDArray[np.uint8]:
    bits = 8 // each
    codes = np.empty((raw.size, each), np.uint8)
    for i in range(each):
        codes[:, i] = raw >> (bits * i) & ((1 << bits) - 1)
    return codes.reshape(-1)


def _one_scale(place: TensorBytes) -> _Meaning:
    encoding, dtype = place.tensor.encoding, place.tensor.dtype
    assert encoding is not None
    if abs(encoding.zero_point) >= 1 << 40:
        # Codes have 32 bits at most, so torch takes no zero point like this; and the difference stays exact.
        raise place.refusal(f"its zero point {encoding.zero_point:,} is no code of {dtype}")
    with np.errstate(over="ignore"):
        scale = np.float32(encoding.scale)

    def meant(codes: NDArray[Any]) -> NDArray[np.float32]:
        return (codes.astype(np.int64) - encoding.zero_point).astype(np.float32) * scale

    if dtype == "qint32":
        return lambda codes, at: meant(codes)
    with np.errstate(over="ignore", invalid="ignore"):
        table = meant(np.arange(256, dtype=np.uint8).view(_CODES[dtype]))
    return lambda codes, at: np.take(table, codes.view(np.uint8))


def _scales(place: TensorBytes) -> _Meaning:
    tensor = place.tensor
    assert tensor.encoding is not None
    axis, parts = tensor.encoding.axis, tensor.encoding.parts
    if len(parts) != 2 or not 0 <= axis < len(tensor.shape):
        raise place.refusal("its scales and zero points are not in the file")
    channels = tensor.shape[axis]
    if channels > _MOST_CHANNELS:
        raise place.refusal(f"{channels:,} scales are more than are read at once")
    scales, zeros = (_per_channel(place, part, channels) for part in parts)
    inner = 1
    for size in tensor.shape[axis + 1 :]:
        inner *= size

    zero_points = zeros.astype(np.float32)

    def meant(codes: NDArray[Any], at: int) -> NDArray[np.float32]:
        numbers, values = codes.astype(np.float32), np.empty(codes.size, np.float32)
        if inner < _LONG:
            channel = _channels(at, codes.size, inner) % channels
            np.multiply(numbers - zero_points[channel], scales[channel], out=values, casting="same_kind")
            return values
        begin = 0
        while begin < codes.size:
            run = (at + begin) // inner
            here = slice(begin, min(codes.size, (run + 1) * inner - at))
            apart = numbers[here] - zero_points[run % channels]
            np.multiply(apart, scales[run % channels], out=values[here], casting="same_kind")
            begin = here.stop
        return values

    return meant


def _per_channel(place: TensorBytes, part: TensorInfo, channels: int) -> NDArray[np.float64]:
    dtype = find_dtype(part.dtype)
    if part.numel != channels or dtype is None or not dtype.native or part.dtype.startswith("complex"):
        raise place.refusal(f"{part.numel:,} {part.dtype} are no scales or zero points of {channels:,} channels")
    numbers: NDArray[np.float64] = read_array(place.checkpoint, part).reshape(-1).astype(np.float64)
    return numbers


def _channels(at: int, n: int, inner: int) -> NDArray[np.int64]:
    """Which run of `inner` elements each of the n elements from `at` on is in: (n,)."""
    first, last = at // inner, (at + n - 1) // inner
    counts = np.full(last - first + 1, min(inner, n))
    counts[0] = min(n, (first + 1) * inner - at)
    if last > first:
        counts[-1] = at + n - last * inner
    return np.repeat(np.arange(first, last + 1), counts)


DECODER = Decoder(id="quantised", claims=_claims, decode=_decode)
