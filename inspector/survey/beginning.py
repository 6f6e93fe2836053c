"""The beginning of a file that may be text: read once for all who look at it, decoded by the mark it begins with."""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource
from inspector.side_files import encoding_of


class Beginning:
    """A source whose first bytes are kept."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self._kept = b""

    @property
    def is_wide(self) -> bool:
        """Whether it begins as text of two bytes a letter does."""
        return self.encoding == "utf-16"

    @property
    def encoding(self) -> str:
        """As programs that heed a mark at the beginning read it."""
        return encoding_of(self.raw(4))

    def raw(self, n: int) -> bytes:
        """The first n bytes, fewer if the file is shorter."""
        wanted = min(n, self.source.size)
        if len(self._kept) < wanted:
            self._kept += self.source.read(len(self._kept), wanted - len(self._kept))
        return self._kept[:wanted]

    def text(self, n: int) -> str:
        """The first n bytes as text."""
        return self.raw(n).decode(self.encoding, "replace")
