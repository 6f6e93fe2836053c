"""A tensor in its file, and whether two of them have the same bytes: what is asked before any number is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import iter_reused_chunks
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.layout import PACKED_LAYOUTS
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.report import Relation, TensorDiff, TensorSide
from inspector.errors import InspectorError, ReadError
from inspector.weights.meter import Meter

#: Of each tensor at a time: both together stay in a processor's second cache.
_CHUNK_NBYTES = 1 << 18
Tile = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor in its file."""

    checkpoint: Checkpoint
    tensor: TensorInfo

    @property
    def side(self) -> TensorSide:
        """As the report names it."""
        t = self.tensor
        return TensorSide(name=t.name, shape=t.shape, dtype=stored_type(t), numel=t.numel, nbytes=t.nbytes)

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two tensors that show the very same elements of one file."""
        t = self.tensor
        name = t.path if t.storage_id is None else ()
        return (id(self.checkpoint.source), t.storage_id, t.offset, t.shape, t.stride, t.dtype, t.encoding, name)


def stored_type(tensor: TensorInfo) -> str:
    """Its type as tables show it: of blocks the name that ggml has for them."""
    packed = tensor.layout in PACKED_LAYOUTS and tensor.encoding is not None
    return tensor.encoding.scheme if packed and tensor.encoding is not None else tensor.dtype


def kind_of(held: Held) -> tuple[object, ...]:
    """What has to be equal for equal bytes to mean equal numbers."""
    tensor, own = held.tensor, held.tensor.encoding
    if own is None or not (own.scheme or own.parts):
        return (tensor.dtype, tensor.layout)
    storage = held.checkpoint.storages.get(tensor.storage_id or "")
    # Byte order is made one where elements are read, but not inside of blocks.
    swapped = tensor.layout in PACKED_LAYOUTS and storage is not None and storage.big_endian
    how = (own.scheme, own.scale, own.zero_point, own.axis, len(own.parts), swapped)
    return (tensor.dtype, tensor.layout, how)


def _pieces(tensor: TensorInfo) -> tuple[TensorInfo, ...]:
    """The dense tensors that its bytes are in."""
    parts = tensor.encoding.parts if tensor.encoding is not None else ()
    return parts if tensor.layout != "strided" else (tensor, *parts)


def same_bytes(a: Held, b: Held, meter: Meter) -> bool:
    """Whether all their bytes are equal; stops at the first piece that is not."""
    ones, twos = _pieces(a.tensor), _pieces(b.tensor)
    if not ones or not twos:
        raise ReadError(f"it is stored as {a.tensor.layout.replace('_', ' ')}, of which the file shows no parts")
    for one, two in zip(ones, twos, strict=True):
        if (one.shape, one.dtype) != (two.shape, two.dtype):
            return False
        if not equal_chunks(raw_chunks(a, one, meter), raw_chunks(b, two, meter)):
            return False
    return True


def raw_chunks(held: Held, tensor: TensorInfo, meter: Meter) -> Iterator[Tile]:
    """Raw elements of one dense tensor, a chunk at a time, in one array again and again."""
    dtype = find_dtype(tensor.dtype)
    if dtype is None:
        raise ReadError(f"its element type {tensor.dtype} is unknown")
    storage = held.checkpoint.storages.get(tensor.storage_id or "")
    if tensor.numel and storage is not None and storage.offset is None and storage.inline is None:
        raise ReadError("the file declares it but holds no data for it")
    # Cut at equal elements in both files.
    return meter.watching(iter_reused_chunks(held.checkpoint, tensor, count=max(1, _CHUNK_NBYTES // dtype.itemsize)))


def piece_chunks(held: Held, meter: Meter) -> Iterator[bytes]:
    """All its bytes, a chunk at a time, for a digest. Raises ReadError where it has none."""
    pieces = _pieces(held.tensor)
    if not pieces:
        raise ReadError("it has no bytes of its own")
    for piece in pieces:
        for chunk in raw_chunks(held, piece, meter):
            yield chunk.tobytes()


def equal_chunks(ones: Iterator[Tile], twos: Iterator[Tile]) -> bool:
    """Whether all chunks have the same bytes."""
    return all(same_tile(x, y) for x, y in zip(ones, twos, strict=True))


def same_tile(x: Tile, y: Tile) -> bool:
    """Whether their bytes are equal, eight at a time where they come so."""
    one, two = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (x, y))
    if one.nbytes == two.nbytes and not one.nbytes % 8:
        one, two = one.view(np.uint64), two.view(np.uint64)
    return np.array_equal(one, two)


# What is said of a pair that is not the same: what it is, so far, is handed on.
Unlike = Callable[[Held, Held, TensorDiff, Meter], TensorDiff]


def held_against(a: Held, b: Held, meter: Meter, *, of_other_shape: Unlike, of_other_bytes: Unlike) -> TensorDiff:
    """What b is to a. A pair that cannot be read is UNREAD, with the reason; raises only what progress raises."""
    found = TensorDiff(a=a.side, b=b.side, relation=Relation.SAME)
    if a.place == b.place:
        return replace(found, note="one tensor of one file")
    try:
        if a.tensor.shape != b.tensor.shape:
            return of_other_shape(a, b, found, meter)
        if kind_of(a) == kind_of(b) and same_bytes(a, b, meter):
            return found
        return of_other_bytes(a, b, found, meter)
    except InspectorError as error:
        return replace(found, relation=Relation.UNREAD, note=error.says)
    except (OSError, ValueError, MemoryError) as error:
        return replace(found, relation=Relation.UNREAD, note=f"it could not be read: {error}")
