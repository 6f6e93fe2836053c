"""Several sources as one, against the bytes put together by hand."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.checkpoint.joined_source import JoinedSource, SliceSource
from inspector.checkpoint.source import BufferSource, ByteSource, PathSource
from inspector.errors import CorruptFile


@given(st.lists(st.binary(max_size=6), max_size=6), st.data())
def test_every_range_is_that_of_the_bytes_together(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    joined = JoinedSource([BufferSource(part) for part in parts], "all")
    assert joined.size == len(whole)
    assert list(joined.starts) == [sum(map(len, parts[:n])) for n in range(len(parts))]
    offset = data.draw(st.integers(0, len(whole)))
    n = data.draw(st.integers(0, len(whole) - offset))
    assert joined.read(offset, n) == whole[offset : offset + n]
    assert joined.read_many([(offset, n), (0, len(whole))]) == [whole[offset : offset + n], whole]


@pytest.mark.parametrize(("offset", "n"), [(-1, 1), (0, -1), (5, 1), (0, 6), (3, 3)])
def test_outside_is_an_error(offset: int, n: int) -> None:
    sources: tuple[ByteSource, ...] = (
        JoinedSource([BufferSource(b"ab"), BufferSource(b"cde")], "all"),
        SliceSource(BufferSource(b"xabcdey"), 1, 5, "slice"),
    )
    for source in sources:
        assert source.read(0, 5) == b"abcde"
        with pytest.raises(CorruptFile, match="ends at byte 5"):
            source.read(offset, n)
        with pytest.raises(CorruptFile):
            source.read_many([(offset, n)])


def test_a_slice_must_fit() -> None:
    inner = BufferSource(b"abcdef", "file")
    assert SliceSource(inner, 6, 0).read(0, 0) == b""
    for start, nbytes in ((0, 7), (5, 2), (-1, 2), (7, 0)):
        with pytest.raises(CorruptFile):
            SliceSource(inner, start, nbytes)


def test_a_slice_does_not_show_what_lies_around_it() -> None:
    piece = SliceSource(BufferSource(b"secretDATAsecret"), 6, 4)
    assert piece.size == 4
    assert piece.read_many([(0, 4), (2, 2)]) == [b"DATA", b"TA"]
    with pytest.raises(CorruptFile):
        piece.read(4, 1)


def test_they_can_be_sent_to_another_process_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    source = JoinedSource([SliceSource(PathSource(path), 2, 3, "piece"), BufferSource(b"ab")], "all")
    again = pickle.loads(pickle.dumps(source))
    assert (again.read(0, 5), again.name, again.parts[0].name) == (b"234ab", "all", "piece")
    source.close()
    assert source.read(1, 3) == b"34a"  # It opens again.
