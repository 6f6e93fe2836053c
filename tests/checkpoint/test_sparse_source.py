"""A source of pieces: gives exactly what is there, and says exactly what is not."""

from __future__ import annotations

import random

import pytest

from inspector.checkpoint.sparse_source import BytesMissing, SparseSource
from inspector.errors import CorruptFile, ReadError

DATA = bytes(random.Random(0).randbytes(300))


def test_what_is_here_is_read_across_pieces_that_touch() -> None:
    source = SparseSource(300, "a")
    source.add(100, DATA[100:150])
    source.add(150, DATA[150:160])
    assert source.read(120, 40) == DATA[120:160]
    assert source.read(0, 0) == b"" == source.read(300, 0)
    assert source.missing == [] and source.held_nbytes == 60


def test_all_that_is_missing_is_noted_at_once_and_is_no_statement_about_the_file() -> None:
    source = SparseSource(300, "a")
    source.add(10, DATA[10:20])
    source.add(30, DATA[30:40])
    with pytest.raises(BytesMissing) as caught:
        source.read_many([(5, 40), (12, 3), (299, 1)])
    assert not isinstance(caught.value, ReadError)
    assert source.missing == [(5, 5), (20, 10), (40, 5), (299, 1)]


@pytest.mark.parametrize(("offset", "n"), [(299, 2), (-1, 1), (0, -1), (301, 0)])
def test_outside_of_the_file_is_nothing(offset: int, n: int) -> None:
    with pytest.raises(CorruptFile, match="ends at byte 300"):
        SparseSource(300, "a").read(offset, n)


def test_pieces_outside_of_the_file_are_refused() -> None:
    source = SparseSource(300, "a")
    with pytest.raises(CorruptFile, match="ends at byte 300"):
        source.add(290, bytes(11))
    assert source.held_nbytes == 0


def test_what_came_first_stays_where_pieces_overlap() -> None:
    source = SparseSource(300, "a")
    source.add(10, b"aaaa")
    source.add(8, b"bbbbbbbbbb")
    assert source.read(8, 10) == b"bbaaaabbbb"
    assert source.held_nbytes == 10


def test_any_pieces_in_any_order_are_the_file(seeds) -> None:  # type: ignore[no-untyped-def]
    for seed in seeds(20, full=500):
        draw = random.Random(seed)
        source, held = SparseSource(300, "a"), set()
        for _ in range(draw.randrange(12)):
            offset = draw.randrange(300)
            n = draw.randrange(min(60, 300 - offset) + 1)
            source.add(offset, DATA[offset : offset + n])
            held |= set(range(offset, offset + n))
        assert source.held_nbytes == len(held)
        offset = draw.randrange(300)
        n = draw.randrange(300 - offset)
        gaps = {at for start, length in source.gaps(offset, n) for at in range(start, start + length)}
        assert gaps == set(range(offset, offset + n)) - held
        if not gaps:
            assert source.read(offset, n) == DATA[offset : offset + n]
