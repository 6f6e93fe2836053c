"""Two tensors that belong together: bytes first, and where those differ their numbers. A tile of each is in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import iter_reused_chunks, read_array
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.layout import PACKED_LAYOUTS
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.casts import CastCheck
from inspector.compare.dense import decode, is_sparse
from inspector.compare.kernel import BLOCK, PairSums
from inspector.compare.numbers import PairNumbers
from inspector.compare.report import Relation, Reshape, TensorDiff, TensorSide
from inspector.errors import InspectorError, ReadError
from inspector.units import human_bytes
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import Decoded, TensorBytes
from inspector.weights.meter import Meter
from inspector.weights.report import NumberKind

#: Of each tensor at a time: both together stay in a processor's second cache.
_CHUNK_NBYTES = 1 << 18
#: Two tensors with their axes exchanged are told from others only up to this size, since both have to be in memory.
MOST_TRANSPOSED_NBYTES = 256 << 20
_MOST_AXES = 4
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


def compare_pair(a: Held, b: Held, meter: Meter) -> TensorDiff:
    """What b is to a. A pair that cannot be read is UNREAD, with the reason; raises only what progress raises."""
    found = TensorDiff(a=a.side, b=b.side, relation=Relation.SAME)
    if a.place == b.place:
        return replace(found, note="one tensor of one file")
    try:
        if a.tensor.shape != b.tensor.shape:
            return _reshaped(a, b, found, meter)
        if _kind(a) == _kind(b) and _same_bytes(a, b, meter):
            return found
        return _numbers(a, b, found, meter)
    except InspectorError as error:
        return replace(found, relation=Relation.UNREAD, note=error.says)
    except (OSError, ValueError, MemoryError) as error:
        return replace(found, relation=Relation.UNREAD, note=f"it could not be read: {error}")


def _kind(held: Held) -> tuple[object, ...]:
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


def _same_bytes(a: Held, b: Held, meter: Meter) -> bool:
    """Whether all their bytes are equal; stops at the first piece that is not."""
    ones, twos = _pieces(a.tensor), _pieces(b.tensor)
    if not ones or not twos:
        raise ReadError(f"it is stored as {a.tensor.layout.replace('_', ' ')}, of which the file shows no parts")
    for one, two in zip(ones, twos, strict=True):
        if (one.shape, one.dtype) != (two.shape, two.dtype):
            return False
        if not _equal(_chunks(a, one, meter), _chunks(b, two, meter)):
            return False
    return True


def _chunks(held: Held, tensor: TensorInfo, meter: Meter) -> Iterator[Tile]:
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
        for chunk in _chunks(held, piece, meter):
            yield chunk.tobytes()


def _equal(ones: Iterator[Tile], twos: Iterator[Tile]) -> bool:
    return all(_alike(x, y) for x, y in zip(ones, twos, strict=True))


def _alike(x: Tile, y: Tile) -> bool:
    """Whether their bytes are equal, eight at a time where they come so."""
    one, two = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (x, y))
    if one.nbytes == two.nbytes and not one.nbytes % 8:
        one, two = one.view(np.uint64), two.view(np.uint64)
    return np.array_equal(one, two)


def _numbers(a: Held, b: Held, found: TensorDiff, meter: Meter) -> TensorDiff:
    """Of two tensors of one shape that are not the same bytes."""
    same_kind = _kind(a) == _kind(b)
    try:
        one, two = _decoded(a, meter), _decoded(b, meter)
        why = _why_not(one, two)
    except ReadError as error:
        # Whoever comes here with two of one kind has seen that their bytes differ; sparse ones may still mean the same.
        if not same_kind or is_sparse(a.tensor):
            raise
        return replace(found, relation=Relation.CHANGED, note=error.says)
    if why:
        return replace(found, relation=Relation.CHANGED if same_kind else Relation.UNREAD, note=why)
    sums = PairSums(one.dtype, two.dtype)
    plain = one.decoding is None or one.decoding.kind is NumberKind.PARTS
    check = CastCheck(one.dtype, two.dtype) if plain and not same_kind else None
    for x, y in zip(blocks(one), blocks(two), strict=True):
        sums.add(x, y)
        if check is not None:
            check.add(x, y)
    numbers = sums.result()
    found = replace(found, numbers=numbers, parts=one.per_element)
    if same_kind:
        note = "only signs of zeros, or bits of NaN, differ" if numbers.equal == numbers.n else ""
        axes = (1, 0) if _is_transposed(a, b, numbers) else ()
        return replace(
            found, relation=Relation.CHANGED, note="axes exchanged, to the last bit" if axes else note, axes=axes
        )
    if numbers.equal == numbers.n:
        return replace(found, relation=Relation.CAST, note="every number as it was")
    if check is not None and (check.rounded or check.cut):
        relation = Relation.CAST if check.rounded else Relation.TRUNCATED
        return replace(found, relation=relation, note=check.rounded or check.cut)
    return replace(found, relation=Relation.CHANGED, note="in another type, and not by a cast alone")


def _is_transposed(a: Held, b: Held, numbers: PairNumbers) -> bool:
    """Whether a square matrix is the other's with its axes exchanged: no shape tells. Both are in memory then."""
    one, two = a.tensor, b.tensor
    plain = all(
        t.layout == "strided" and not (t.encoding and (t.encoding.scheme or t.encoding.parts)) for t in (one, two)
    )
    if len(one.shape) != 2 or one.shape[0] != one.shape[1] or not plain or one.nbytes > MOST_TRANSPOSED_NBYTES:
        return False
    # Their squares add up to the same, in whatever order; nearly all that changed ends here.
    if numbers.finite != numbers.n or abs(numbers.square_a - numbers.square_b) > 1e-9 * numbers.square_a:
        return False
    x, y = (read_array(held.checkpoint, held.tensor) for held in (a, b))
    return _alike(np.ascontiguousarray(x.T), y)


def _decoded(held: Held, meter: Meter) -> Decoded:
    place = TensorBytes(checkpoint=held.checkpoint, tensor=held.tensor, at_once=BLOCK, watch=meter.watching)
    decoded = decode(place)
    if find_decoder(held.tensor).id != "plain" or not held.tensor.storage_id:
        return decoded
    return replace(decoded, chunks=meter.watching(iter_reused_chunks(held.checkpoint, held.tensor, count=BLOCK)))


def _why_not(one: Decoded, two: Decoded) -> str:
    """Why numbers of the one are not to be held against numbers of the other, as a clause."""
    kinds = [each.decoding.kind if each.decoding is not None else None for each in (one, two)]
    if NumberKind.CODES in kinds and kinds[0] is not kinds[1]:
        return "the one holds packed codes, the other numbers"
    if one.per_element != two.per_element:
        return "the one is stored in another way than the other, and they were not held against each other"
    return ""


def blocks(decoded: Decoded, most: int | None = None) -> Iterator[Tile]:
    """The numbers in pieces of BLOCK, the last one shorter; the first `most` of them where that is given. Each is to be
    looked at before the next is taken."""
    held: list[Tile] = []
    size, left = 0, most
    for chunk in decoded.chunks:
        rest = chunk.reshape(-1) if left is None else chunk.reshape(-1)[:left]
        left = None if left is None else left - rest.size
        while rest.size:
            part, rest = rest[: BLOCK - size], rest[BLOCK - size :]
            size += part.size
            # What is kept for later is copied: a decoder may write the next numbers over it.
            held.append(part if size == BLOCK else part.copy())
            if size == BLOCK:
                yield held[0] if len(held) == 1 else np.concatenate(held)
                held, size = [], 0
        if left == 0:
            break
    if size:
        yield np.concatenate(held)


def _reshaped(a: Held, b: Held, found: TensorDiff, meter: Meter) -> TensorDiff:
    found = replace(found, relation=Relation.RESHAPED)
    one, two = a.tensor, b.tensor
    if one.shape[1:] == two.shape[1:] and one.shape and two.shape and one.numel and two.numel:
        return _rows(a, b, found, meter)
    if one.numel != two.numel:
        return replace(found, reshape=Reshape.OTHER)
    if _kind(a) != _kind(b) or one.layout != "strided":
        return replace(found, reshape=Reshape.UNKNOWN, note="of another type and another shape")
    if _same_bytes_flat(a, b, meter):
        return replace(found, reshape=Reshape.ROW_MAJOR)
    orders = list(_orders(one.shape, two.shape))
    if not orders:
        return replace(found, reshape=Reshape.OTHER)
    if one.nbytes > MOST_TRANSPOSED_NBYTES:
        limit = human_bytes(MOST_TRANSPOSED_NBYTES)
        return replace(found, reshape=Reshape.UNKNOWN, note=f"axes exchanged? That is looked at up to {limit}")
    x, y = read_array(a.checkpoint, one), read_array(b.checkpoint, two)
    for axes in orders:
        if np.array_equal(
            np.ascontiguousarray(x.transpose(axes)).view(np.uint8), np.ascontiguousarray(y).view(np.uint8)
        ):
            return replace(found, reshape=Reshape.TRANSPOSED, axes=axes)
    return replace(found, reshape=Reshape.OTHER)


def _same_bytes_flat(a: Held, b: Held, meter: Meter) -> bool:
    return _equal(_chunks(a, a.tensor, meter), _chunks(b, b.tensor, meter))


def _orders(one: tuple[int, ...], two: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The exchanges of axes that make the one shape of the other."""
    if len(one) != len(two) or not 1 < len(one) <= _MOST_AXES:
        return
    for axes in permutations(range(len(one))):
        if tuple(one[axis] for axis in axes) == two:
            yield axes


def _rows(a: Held, b: Held, found: TensorDiff, meter: Meter) -> TensorDiff:
    """Shapes that differ in the first axis alone: the rows that both have."""
    rows = min(a.tensor.shape[0], b.tensor.shape[0])
    found = replace(found, rows=rows)
    one, two = _decoded(a, meter), _decoded(b, meter)
    why = _why_not(one, two)
    if why:
        return replace(found, reshape=Reshape.UNKNOWN, note=why)
    most = rows * math.prod(a.tensor.shape[1:]) * one.per_element
    sums = PairSums(one.dtype, two.dtype)
    alike = True
    for x, y in zip(blocks(one, most), blocks(two, most), strict=True):
        sums.add(x, y)
        alike = alike and one.dtype == two.dtype and x.tobytes() == y.tobytes()
    numbers = sums.result()
    if alike or (one.dtype != two.dtype and numbers.equal == numbers.n):
        return replace(found, reshape=Reshape.FIRST_ROWS)
    return replace(found, reshape=Reshape.OTHER, numbers=numbers, parts=one.per_element)
