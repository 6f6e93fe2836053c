"""Two tensors that belong together: bytes first, and where those differ their numbers. A tile of each is in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from inspector.checkpoint.data import iter_reused_chunks, read_array
from inspector.compare.casts import CastCheck
from inspector.compare.dense import decode, is_sparse
from inspector.compare.held import Held, Tile, equal_chunks, held_against, kind_of, raw_chunks, same_tile
from inspector.compare.kernel import BLOCK, PairSums
from inspector.compare.numbers import PairNumbers
from inspector.compare.report import Relation, Reshape, TensorDiff
from inspector.errors import ReadError
from inspector.units import human_bytes
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import Decoded, TensorBytes
from inspector.weights.meter import Meter
from inspector.weights.report import NumberKind

#: Two tensors with their axes exchanged are told from others only up to this size, since both have to be in memory.
MOST_TRANSPOSED_NBYTES = 256 << 20
_MOST_AXES = 4


def compare_pair(a: Held, b: Held, meter: Meter) -> TensorDiff:
    """What b is to a, in numbers. Raises as `held_against`."""
    return held_against(a, b, meter, of_other_shape=_reshaped, of_other_bytes=_numbers)


def _numbers(a: Held, b: Held, found: TensorDiff, meter: Meter) -> TensorDiff:
    """Of two tensors of one shape that are not the same bytes."""
    same_kind = kind_of(a) == kind_of(b)
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
    return same_tile(np.ascontiguousarray(x.T), y)


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
    if kind_of(a) != kind_of(b) or one.layout != "strided":
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
    return equal_chunks(raw_chunks(a, a.tensor, meter), raw_chunks(b, b.tensor, meter))


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
