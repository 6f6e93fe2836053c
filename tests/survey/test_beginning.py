"""The beginning of a file is read once, and decoded by the mark that it begins with."""

from __future__ import annotations

import pytest

from inspector.checkpoint.source import BufferSource
from inspector.survey.beginning import Beginning


class _Counted(BufferSource):
    """Remembers what was read of it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.spans: list[tuple[int, int]] = []

    def read(self, offset: int, n: int) -> bytes:
        self.spans.append((offset, n))
        return super().read(offset, n)


def test_no_byte_is_read_twice() -> None:
    source = _Counted(b"0123456789")
    beginning = Beginning(source)
    assert (beginning.raw(4), beginning.text(6), beginning.raw(2), beginning.raw(100)) == (
        b"0123", "012345", b"01", b"0123456789",
    )  # fmt: skip
    assert source.spans == [(0, 4), (4, 2), (6, 4)]


@pytest.mark.parametrize(
    ("encoding", "is_wide"), [("utf-8", False), ("utf-8-sig", False), ("utf-16", True), ("ascii", False)]
)
def test_the_mark_tells_the_encoding(encoding: str, is_wide: bool) -> None:
    beginning = Beginning(BufferSource("settings: 1".encode(encoding)))
    assert beginning.text(1000) == "settings: 1" and beginning.is_wide is is_wide
