"""Tensors out of pieces, against numpy: random shapes, random partitions, any range of bytes."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inspector.checkpoint.assembled_source import AssembledSource, Piece
from inspector.checkpoint.coverage import Box, survey
from inspector.checkpoint.source import BufferSource
from inspector.errors import CorruptFile


class Counting(BufferSource):
    """Counts the reads and the bytes they ask for."""

    def __init__(self, data: bytes, name: str = "counted") -> None:
        super().__init__(data, name)
        self.reads: list[int] = []

    def read(self, offset: int, n: int) -> bytes:
        self.reads.append(n)
        return super().read(offset, n)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]


def pieces_of(whole: NDArray[np.generic], boxes: list[Box], orders: list[tuple[int, ...]]) -> list[Piece]:
    """One source per box, its elements in the axis order given, 3 bytes of something else in front."""
    made = []
    for (offsets, sizes), order in zip(boxes, orders, strict=True):
        part = whole[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
        moved = np.array(part.transpose(order), order="C")
        strides = [0] * len(sizes)
        for axis, step in zip(order, moved.strides, strict=True):
            strides[axis] = step // whole.itemsize
        plain = order == tuple(range(len(sizes)))
        source = BufferSource(b"???" + moved.tobytes())
        made.append(Piece(offsets, sizes, source, 3, None if plain else tuple(strides)))
    return made


@st.composite
def partitions(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Box], list[tuple[int, ...]]]:
    """A shape and boxes that cover it once: split again and again along a random axis."""
    shape = tuple(draw(st.lists(st.integers(1, 7), max_size=4)))
    boxes: list[Box] = [(tuple(0 for _ in shape), shape)]
    for _ in range(draw(st.integers(0, 9)) if shape else 0):
        offsets, sizes = boxes.pop(draw(st.integers(0, len(boxes) - 1)))
        axis = draw(st.integers(0, len(shape) - 1))
        cut = draw(st.integers(0, sizes[axis]))
        upper = tuple(o + cut * (i == axis) for i, o in enumerate(offsets))
        boxes.append((offsets, tuple(cut if i == axis else n for i, n in enumerate(sizes))))
        boxes.append((upper, tuple(n - cut * (i == axis) for i, n in enumerate(sizes))))
    orders = [tuple(draw(st.permutations(range(len(shape))))) for _ in boxes]
    return shape, draw(st.permutations(boxes)), orders


def numbers(shape: tuple[int, ...], dtype: str) -> NDArray[np.generic]:
    return np.random.default_rng(0).integers(0, 251, math.prod(shape)).astype(dtype).reshape(shape)


@given(partitions(), st.sampled_from(["u1", "<u2", "<f4", "<i8", "<c16"]), st.data())
@settings(deadline=None)
def test_any_range_of_any_partition_is_what_numpy_has(
    partition: tuple[tuple[int, ...], list[Box], list[tuple[int, ...]]], dtype: str, data: st.DataObject
) -> None:
    shape, boxes, orders = partition
    whole = numbers(shape, dtype)
    source = AssembledSource(pieces_of(whole, boxes, orders), shape=shape, itemsize=whole.itemsize, name="t")
    expected = whole.tobytes()
    assert source.size == len(expected)
    assert source.read(0, source.size) == expected
    start = data.draw(st.integers(0, len(expected)))
    n = data.draw(st.integers(0, len(expected) - start))
    assert source.read(start, n) == expected[start : start + n]
    found = survey(shape, boxes, most_cells=100_000)
    assert found is not None and (found.missing, found.doubled, found.first_missing) == (0, 0, None)


@given(partitions(), st.data())
@settings(deadline=None)
def test_a_survey_counts_what_numpy_counts(
    partition: tuple[tuple[int, ...], list[Box], list[tuple[int, ...]]], data: st.DataObject
) -> None:
    shape, boxes, _ = partition
    chosen = data.draw(st.lists(st.sampled_from(boxes), max_size=8))
    counts = np.zeros(shape, dtype=int)
    for offsets, sizes in chosen:
        counts[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))] += 1
    found = survey(shape, chosen, most_cells=100_000)
    assert found is not None
    assert found.missing == int((counts == 0).sum())
    assert found.doubled == int(np.maximum(counts - 1, 0).sum())
    missing = np.flatnonzero(counts.reshape(-1) == 0)
    assert found.first_missing == (int(missing[0]) if missing.size else None)


def test_too_many_boundaries_are_not_counted() -> None:
    boxes = [((i, i), (1, 1)) for i in range(200)]
    assert survey((200, 200), boxes, most_cells=10_000) is None
    assert survey((200, 200), [((0, 0), (200, 200))] * 50_000, most_cells=10_000) is None


def test_many_small_runs_are_read_at_once() -> None:
    """Eight ranks hold 512 of 4096 columns each: 256 rows are 2,048 runs, and eight reads."""
    whole = numbers((256, 4096), "<f4")
    sources = [Counting(np.ascontiguousarray(whole[:, i * 512 : (i + 1) * 512]).tobytes()) for i in range(8)]
    pieces = [Piece((0, i * 512), (256, 512), s) for i, s in enumerate(sources)]
    source = AssembledSource(pieces, shape=(256, 4096), itemsize=4, name="t")
    assert source.read(0, source.size) == whole.tobytes()
    assert [len(s.reads) for s in sources] == [1] * 8


def test_a_read_asks_for_about_what_it_gives() -> None:
    whole = numbers((512, 512), "<f4")
    column_major = Counting(np.asfortranarray(whole).tobytes(order="F"))
    source = AssembledSource(
        [Piece((0, 0), (512, 512), column_major, 0, (1, 512))], shape=(512, 512), itemsize=4, name="t"
    )
    assert source.read(512 * 4 * 100, 512 * 4 * 16) == whole[100:116].tobytes()
    assert sum(column_major.reads) == 512 * 4 * 16
    column_major.reads.clear()
    assert source.read(0, 8) == whole.tobytes()[:8]
    assert sum(column_major.reads) <= 64 * 8


def test_pieces_far_away_are_not_touched() -> None:
    whole = numbers((1000, 8), "<f4")
    sources = [Counting(whole[i * 10 : i * 10 + 10].tobytes()) for i in range(100)]
    pieces = [Piece((i * 10, 0), (10, 8), s) for i, s in enumerate(sources)]
    source = AssembledSource(pieces, shape=(1000, 8), itemsize=4, name="t")
    assert source.read(505 * 32, 10 * 32) == whole[505:515].tobytes()
    assert [i for i, s in enumerate(sources) if s.reads] == [50, 51]


def test_a_missing_piece_is_named_and_the_rest_can_be_read() -> None:
    whole = numbers((4, 3), "<f4")
    pieces = [
        Piece((0, 0), (2, 3), BufferSource(whole[:2].tobytes())),
        Piece((2, 0), (2, 3), None, says="__1_0.distcp is not in the folder"),
    ]
    source = AssembledSource(pieces, shape=(4, 3), itemsize=4, name="w")
    assert source.read(0, 24) == whole[:2].tobytes()
    with pytest.raises(CorruptFile, match=r"element \(2, 0\) cannot be read: __1_0.distcp is not in the folder"):
        source.read(0, 25)


def test_a_gap_between_pieces_is_no_zero() -> None:
    pieces = [Piece((0,), (2,), BufferSource(b"\1\2")), Piece((3,), (1,), BufferSource(b"\4"))]
    source = AssembledSource(pieces, shape=(4,), itemsize=1, name="w")
    assert source.read(3, 1) == b"\4"
    with pytest.raises(CorruptFile, match=r"no piece holds element \(2,\)"):
        source.read(1, 2)


def test_of_two_pieces_the_later_one_counts() -> None:
    pieces = [Piece((0,), (2,), BufferSource(b"\1\2")), Piece((0,), (2,), BufferSource(b"\7\x08"))]
    assert AssembledSource(pieces, shape=(2,), itemsize=1, name="w").read(0, 2) == b"\7\x08"


@pytest.mark.parametrize(
    "piece",
    [
        Piece((0,), (3,), None),
        Piece((-1,), (1,), None),
        Piece((0,), (-1,), None),
        Piece((0, 0), (1, 1), None),
        Piece((0,), (2,), None, 0, (-1,)),
    ],
)
def test_a_piece_outside_the_tensor_is_refused(piece: Piece) -> None:
    with pytest.raises(CorruptFile, match="does not lie inside"):
        AssembledSource([piece], shape=(2,), itemsize=1, name="w")


def test_a_source_shorter_than_its_piece_says_so() -> None:
    source = AssembledSource([Piece((0,), (4,), BufferSource(b"\1\2", "short"))], shape=(4,), itemsize=1, name="w")
    with pytest.raises(CorruptFile, match="short ends at byte 2"):
        source.read(0, 4)


def test_scalars_empty_tensors_and_pickling() -> None:
    scalar = AssembledSource([Piece((), (), BufferSource(b"\1\2\3\4"))], shape=(), itemsize=4, name="s")
    assert scalar.read(0, 4) == b"\1\2\3\4" and scalar.read(1, 2) == b"\2\3"
    empty = AssembledSource([Piece((0, 0), (0, 3), None)], shape=(0, 3), itemsize=4, name="e")
    assert empty.size == 0 and empty.read(0, 0) == b""
    assert pickle.loads(pickle.dumps(scalar)).read(0, 4) == b"\1\2\3\4"


def test_a_huge_tensor_costs_only_what_is_read() -> None:
    """2**40 elements in two pieces: nothing is allocated for the whole."""
    n = 1 << 40
    source = AssembledSource(
        [Piece((0,), (4,), BufferSource(b"abcd")), Piece((4,), (n - 4,), None)], shape=(n,), itemsize=1, name="w"
    )
    assert source.read(1, 3) == b"bcd"
