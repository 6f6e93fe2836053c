"""Where a tensor's elements lie in its storage, by arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Storage, TensorInfo

# Element types of which several lie in one byte, and how many. torch fills whole bytes per row (the last dimension).
PACKED = {"quint4x2": 2, "quint2x4": 4}
# Layouts of several numbers to a unit: they have no stride, and sizes in elements say nothing about their bytes.
PACKED_LAYOUTS = ("quantised_blocks", "packed_elements")

_PLAIN_FLOATS = frozenset({"float32", "float16", "bfloat16", "float64"})


def is_plain_float(tensor: TensorInfo) -> bool:
    """Whether its elements are floats of 16 bits and more, each stored as it is: nothing is to be decoded."""
    return tensor.dtype in _PLAIN_FLOATS and tensor.layout == "strided" and tensor.encoding is None


def packed_shape(shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """The shape in bytes of a tensor of a packed type; () for a scalar, which takes one.

    Source: aten/src/ATen/quantized/Quantizer.cpp, get_sub_byte_tensor_size.
    """
    return (*shape[:-1], -(-shape[-1] // PACKED[dtype])) if shape else ()


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous tensor, as torch counts them (sizes of 0 count as 1)."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def is_contiguous(tensor: TensorInfo) -> bool:
    """Whether the elements lie in row-major order without gaps; sizes of 0 and 1 do not care for their stride."""
    if tensor.stride is None or tensor.numel == 0:
        return tensor.layout == "strided"
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def span_of(tensor: TensorInfo) -> tuple[int, int]:
    """First and one past the last element of the storage that the tensor touches; bytes for packed types."""
    if 0 in tensor.shape:
        return tensor.offset, tensor.offset
    if tensor.dtype in PACKED and tensor.offset == 0 and is_contiguous(tensor):
        return 0, math.prod(packed_shape(tensor.shape, tensor.dtype))
    if tensor.stride is None:
        return tensor.offset, tensor.offset + tensor.numel
    last = tensor.offset
    for size, stride in zip(tensor.shape, tensor.stride, strict=True):
        last += (size - 1) * stride
    return tensor.offset, last + 1


def nbytes_lost(tensors: Iterable[TensorInfo], storages: Mapping[str, Storage]) -> int:
    """How many of the tensors' bytes are not in the file; what several of them show counts once."""
    seen = {(t.storage_id, t.offset, t.shape): t for t in tensors if t.storage_id is not None}
    return sum(round(t.nbytes * fraction_lost(t, storages)) for t in seen.values())


def fraction_lost(tensor: TensorInfo, storages: Mapping[str, Storage]) -> float:
    """How much of the bytes that a tensor reaches is not in the file, 0.0 to 1.0. 0.0 for one without bytes."""
    packed = tensor.layout in PACKED_LAYOUTS
    if tensor.storage_id is None or not tensor.numel or (tensor.dtype not in DTYPES and not packed):
        return 0.0
    storage = storages.get(tensor.storage_id)
    if storage is None:
        return 1.0
    if packed:
        return 1 - storage.present_nbytes / storage.nbytes if storage.nbytes else 0.0
    first, end = (n * DTYPES[tensor.dtype].itemsize for n in span_of(tensor))
    return 1 - max(0, min(end, storage.present_nbytes) - first) / (end - first)


def why_unreadable(tensor: TensorInfo) -> str:
    """Why a tensor has no readable elements, "" when it has."""
    if tensor.layout != "strided":
        return f"it is stored as {tensor.layout.replace('_', ' ')}"
    if tensor.dtype in PACKED:
        return "its elements are packed several to a byte"
    if tensor.storage_id is None:
        return tensor.note or "the file has no data for it"
    return ""
