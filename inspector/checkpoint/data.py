"""The numbers of a tensor, read from the file when asked for: whole, as an array, or in chunks.

Nothing is kept. A contiguous tensor is streamed; a strided view reads the span of its storage that it touches; a
deflated storage is inflated up to what it declares. Byte order is always made little-endian.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.floats import float8_table
from inspector.checkpoint.inflating import inflated
from inspector.checkpoint.layout import PACKED, is_contiguous, packed_shape, span_of, why_unreadable
from inspector.checkpoint.source import read_into
from inspector.checkpoint.types import Checkpoint, Storage, TensorInfo
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.units import human_bytes

__all__ = [
    "is_contiguous",
    "is_stored_as",
    "iter_chunks",
    "iter_reused_chunks",
    "read_array",
    "read_bytes",
    "read_storage",
    "span_of",
    "to_float32",
    "why_unreadable",
]

_LITTLE = sys.byteorder == "little"
_MOST_EXPANDED = 16
_EXPANDED_NBYTES = 1 << 30


def read_bytes(checkpoint: Checkpoint, tensor: TensorInfo) -> bytes:
    """The elements in row-major order, little-endian; numel x itemsize bytes, fewer for types packed several to a byte.

    Raises ReadError when the file has no bytes for it (meta, sparse, nested), CorruptFile when they are cut
    off, LimitExceeded when an expanded view would be far larger than its storage.
    """
    return read_array(checkpoint, tensor).tobytes()


def read_array(checkpoint: Checkpoint, tensor: TensorInfo) -> NDArray[np.generic]:
    """An array of the tensor's shape; bfloat16, float8 and quantised types as their raw bits (see `DType.raw`).

    Types packed several to a byte give their bytes, with the last dimension so much shorter (`packed_shape`).
    Conjugated and negated views give the values that torch shows for them.
    """
    view = _view(checkpoint, tensor)
    return _resolve(np.ascontiguousarray(view).reshape(_raw_shape(tensor)), tensor)


def iter_chunks(
    checkpoint: Checkpoint, tensor: TensorInfo, *, chunk_nbytes: int = 1 << 20, first: int = 0, count: int | None = None
) -> Iterator[NDArray[np.generic]]:
    """One-dimensional raw arrays in row-major order, about chunk_nbytes each; nothing for an empty tensor.

    first, count: of these elements alone; all that makes the whole tensor unreadable is raised all the same.
    """
    storage = _storage(checkpoint, tensor)
    itemsize = DTYPES[tensor.dtype].itemsize
    step = max(1, chunk_nbytes // itemsize)
    numel = math.prod(_raw_shape(tensor))
    end = numel if count is None else min(numel, first + count)
    if is_contiguous(tensor) and storage.deflated_nbytes is None and storage.inline is None:
        _check_span(checkpoint, tensor, storage)
        start = (storage.offset or 0) + tensor.offset * itemsize
        for at in range(first, end, step):
            n = min(step, end - at)
            raw = _typed(checkpoint.source.read(start + at * itemsize, n * itemsize), tensor, storage)
            yield _resolve(raw, tensor)
        return
    view = _view(checkpoint, tensor)
    flat = view.reshape(-1) if view.flags.c_contiguous else view.flat
    for at in range(first, end, step):
        yield _resolve(np.asarray(flat[at : min(end, at + step)]), tensor)


def iter_reused_chunks(
    checkpoint: Checkpoint, tensor: TensorInfo, *, count: int, first: int = 0, numel: int | None = None
) -> Iterator[NDArray[np.generic]]:
    """As `iter_chunks`, `count` elements each, into one array again and again: look at each before taking the next.

    first, numel: of these elements alone.
    """
    dtype = np.dtype(DTYPES[tensor.dtype].raw)
    storage = _storage(checkpoint, tensor)
    stored = storage.offset is not None and storage.deflated_nbytes is None and storage.inline is None
    plain = tensor.encoding is None and not storage.big_endian and _LITTLE and tensor.dtype not in PACKED
    if not stored or not plain or not is_contiguous(tensor):
        yield from iter_chunks(checkpoint, tensor, chunk_nbytes=count * dtype.itemsize, first=first, count=numel)
        return
    _check_span(checkpoint, tensor, storage)
    at = (storage.offset or 0) + (tensor.offset + first) * dtype.itemsize
    left = max(0, tensor.numel - first) if numel is None else min(numel, tensor.numel - first)
    held = np.empty(min(count, left), dtype)
    raw = held.view(np.uint8).data
    while left:
        n = min(count, left)
        read_into(checkpoint.source, at, raw[: n * dtype.itemsize])
        yield held[:n]
        at, left = at + n * dtype.itemsize, left - n


def is_stored_as(
    checkpoint: Checkpoint, tensor: TensorInfo, wanted: NDArray[np.uint8], *, chunk_nbytes: int = 1 << 22
) -> bool:
    """Whether its bytes in the file, row-major and little-endian, are these; a piece of them held at a time."""
    at = 0
    for chunk in iter_chunks(checkpoint, tensor, chunk_nbytes=chunk_nbytes):
        if not np.array_equal(chunk.view(np.uint8), wanted[at : at + chunk.nbytes]):
            return False
        at += chunk.nbytes
    return at == len(wanted)


def read_storage(checkpoint: Checkpoint, storage: Storage, start: int, nbytes: int) -> bytes:
    """nbytes of a storage from byte start, in the file's byte order, inflated where it is deflated."""
    if storage.inline is not None:
        return storage.inline[start : start + nbytes]
    if storage.offset is None:
        raise ReadError(f"Storage {storage.id} of {checkpoint.origin.name} has no bytes in the file.")
    if start + nbytes > storage.present_nbytes:
        raise CorruptFile(
            f"Storage {storage.id} of {checkpoint.origin.name} should hold {storage.nbytes:,} bytes, "
            f"but the file has only {storage.present_nbytes:,} of them.",
            hint="The file is cut short: download or copy it again.",
        )
    if storage.deflated_nbytes is None:
        return checkpoint.source.read(storage.offset + start, nbytes)
    return _inflate(checkpoint, storage, storage.skipped_nbytes + start, nbytes)


def _inflate(checkpoint: Checkpoint, storage: Storage, start: int, nbytes: int) -> bytes:
    inflater = zlib.decompressobj(-15)
    skip, left = start, nbytes
    at, end = storage.offset or 0, (storage.offset or 0) + (storage.deflated_nbytes or 0)
    made: list[bytes] = []
    try:
        while left > 0 and not inflater.eof and at < end:
            packed = checkpoint.source.read(at, min(1 << 20, end - at))
            at += len(packed)
            if not packed:
                break
            for part in inflated(inflater, packed, 1 << 22):
                kept = part[skip : skip + left]
                skip -= min(skip, len(part))
                left -= len(kept)
                made.append(kept)
                if left <= 0:
                    break
    except zlib.error as error:
        raise CorruptFile(f"Storage {storage.id} of {checkpoint.origin.name} cannot be inflated: {error}.") from error
    if left > 0:
        raise CorruptFile(f"Storage {storage.id} of {checkpoint.origin.name} inflates to {left:,} bytes too few.")
    return b"".join(made)


def _storage(checkpoint: Checkpoint, tensor: TensorInfo) -> Storage:
    reason = why_unreadable(tensor)
    if tensor.dtype in PACKED and tensor.layout == "strided" and tensor.storage_id is not None:
        reason = "" if tensor.offset == 0 and is_contiguous(tensor) else "it is a view of elements packed in bytes"
    if reason:
        raise ReadError(f"{tensor.name} cannot be read as numbers: {reason}.")
    storage = checkpoint.storages.get(tensor.storage_id or "")
    if storage is None:
        raise CorruptFile(f"{tensor.name} needs storage {tensor.storage_id}, which {checkpoint.origin.name} lacks.")
    return storage


def _check_span(checkpoint: Checkpoint, tensor: TensorInfo, storage: Storage) -> tuple[int, int]:
    itemsize = DTYPES[tensor.dtype].itemsize
    first, end = span_of(tensor)
    # as_strided would follow a negative step out of the buffer; readers make none, and this is where it would hurt.
    if tensor.offset < 0 or any(step < 0 for step in tensor.stride or ()):
        raise CorruptFile(f"{tensor.name} has a negative offset or stride, which torch does not allow.")
    if end * itemsize > storage.nbytes:
        raise CorruptFile(
            f"{tensor.name} needs {end * itemsize:,} bytes of storage {storage.id}, which has {storage.nbytes:,}."
        )
    if end * itemsize > storage.present_nbytes and tensor.numel:
        raise CorruptFile(
            f"{tensor.name} ends at byte {end * itemsize:,} of storage {storage.id}, but the file has only "
            f"{storage.present_nbytes:,} of its {storage.nbytes:,} bytes.",
            hint="The file is cut short: download or copy it again.",
        )
    return first, end


def _view(checkpoint: Checkpoint, tensor: TensorInfo) -> NDArray[np.generic]:
    storage = _storage(checkpoint, tensor)
    if not tensor.numel:
        try:
            return np.empty(_raw_shape(tensor), dtype=DTYPES[tensor.dtype].raw)
        except ValueError as error:  # Beside the 0, sizes of which numpy makes no array.
            raise CorruptFile(f"{tensor.name} has no elements and sizes that no array can have.") from error
    first, end = _check_span(checkpoint, tensor, storage)
    itemsize = DTYPES[tensor.dtype].itemsize
    if tensor.nbytes > max(_EXPANDED_NBYTES, _MOST_EXPANDED * storage.nbytes):
        raise LimitExceeded(
            f"{tensor.name} repeats {human_bytes((end - first) * itemsize)} of its storage "
            f"as {human_bytes(tensor.nbytes)}.",
            hint="An expanded view this large is not written out.",
        )
    raw = read_storage(checkpoint, storage, first * itemsize, (end - first) * itemsize)
    flat = _typed(raw, tensor, storage)
    if tensor.stride is None or is_contiguous(tensor):
        return flat.reshape(_raw_shape(tensor))
    strides = tuple(s * itemsize for s in tensor.stride)
    return as_strided(flat, shape=tensor.shape, strides=strides, writeable=False)


def _raw_shape(tensor: TensorInfo) -> tuple[int, ...]:
    return packed_shape(tensor.shape, tensor.dtype) if tensor.dtype in PACKED else tensor.shape


def _resolve(raw: NDArray[np.generic], tensor: TensorInfo) -> NDArray[np.generic]:
    """The values of a lazily conjugated or negated view, of which torch stores what it is a view of."""
    encoding = tensor.encoding
    if encoding is None or not (encoding.conjugated or encoding.negated):
        return raw
    dtype = DTYPES[tensor.dtype]
    if encoding.conjugated and tensor.dtype in ("complex32", "bcomplex32"):
        parts = np.ascontiguousarray(raw).reshape(-1).view(np.uint16).copy()
        parts[1::2] ^= np.uint16(0x8000)  # The sign bit of the imaginary half.
        raw = parts.view(raw.dtype).reshape(raw.shape)
    elif encoding.conjugated and tensor.dtype.startswith("complex"):
        raw = np.conjugate(raw)
    if not encoding.negated:
        return raw
    if tensor.dtype in ("complex32", "bcomplex32"):
        halves = np.ascontiguousarray(raw).reshape(-1).view(np.uint16) ^ np.uint16(0x8000)
        return halves.view(raw.dtype).reshape(raw.shape)
    if dtype.native and tensor.dtype != "bool":
        negated: NDArray[np.generic] = np.negative(raw)
        return negated
    if tensor.dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        bits = np.asarray(raw)
        flipped: NDArray[np.generic] = bits ^ bits.dtype.type(1 << (dtype.bits - 1))
        return flipped
    raise ReadError(f"{tensor.name} is a negated view of {tensor.dtype}, which this program does not work out.")


def _typed(raw: bytes, tensor: TensorInfo, storage: Storage) -> NDArray[np.generic]:
    dtype = np.dtype(DTYPES[tensor.dtype].raw)
    if not storage.big_endian:
        return np.frombuffer(raw, dtype=dtype.newbyteorder("<")).astype(dtype, copy=False)
    if tensor.dtype in ("complex32", "bcomplex32"):  # Two half floats, each swapped on its own.
        return np.frombuffer(raw, dtype=">u2").astype("<u2").view(dtype)
    return np.frombuffer(raw, dtype=dtype.newbyteorder(">")).astype(dtype)


def to_float32(raw: NDArray[np.generic], dtype_name: str) -> NDArray[np.float32]:
    """Raw elements, any shape, as float32 values.

    Exact for float16, bfloat16 and the 8-bit floats; float64 and integers round to nearest; complex numbers give
    their magnitude; quantised types their integer codes. Raises ReadError for types that have no one number per
    element (bits, packed 4-bit floats).
    """
    dtype = DTYPES[dtype_name]
    if dtype_name == "bfloat16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype_name.startswith("float8"):
        return float8_table(dtype_name)[raw.astype(np.uint8)]
    if dtype_name == "complex32":
        halves = np.ascontiguousarray(raw).view(np.float16).reshape(*raw.shape, 2).astype(np.float32)
        return np.hypot(halves[..., 0], halves[..., 1])
    if dtype_name == "bcomplex32":
        pairs = np.ascontiguousarray(raw).view(np.uint16).reshape(*raw.shape, 2).astype(np.uint32)
        wide = (pairs << np.uint32(16)).view(np.float32)
        return np.hypot(wide[..., 0], wide[..., 1])
    if dtype_name.startswith("complex"):
        magnitude: NDArray[np.float32] = np.abs(raw).astype(np.float32)
        return magnitude
    if dtype_name in ("qint8", "qint32"):
        return raw.view(np.int8 if dtype_name == "qint8" else np.int32).astype(np.float32)
    if dtype.native or dtype_name == "quint8":
        with np.errstate(
            over="ignore"
        ):  # A float64 beyond float32's range becomes infinite, which is what it is there.
            return raw.astype(np.float32)
    raise ReadError(f"Elements of type {dtype_name} are no single numbers.")
