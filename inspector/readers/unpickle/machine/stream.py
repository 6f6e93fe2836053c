"""A sliding window over a source, so that a pickle at the head of a 2 GB file costs no more than the pickle."""

from __future__ import annotations

from inspector.checkpoint.source import ByteSource
from inspector.limits import Limits
from inspector.readers.unpickle.stand_ins import BytesAt

_FIRST_NBYTES = 64 * 1024
_MOST_NBYTES = 1024 * 1024
_LINE_NBYTES = 1 << 20
# The share of an opening's memory that the records of one pickle may take; the outline of them needs the rest.
_SHARE = 0.65
# A long constant is in memory as bytes, as their copy and as text, which takes up to four bytes a character.
_COPIES = 6


class Broken(Exception):
    """The stream cannot be followed any further; the sentence says why. Internal to the machine."""


class OverLimit(Broken):
    """A length or count in the stream is over `Limits`."""


class Window:
    """Bytes start .. stop of a source, read forward. Positions are absolute in the source."""

    def __init__(self, source: ByteSource, start: int, stop: int, limits: Limits) -> None:
        self.source = source
        self.start = start
        self.whole = stop
        self.stop = min(stop, start + limits.pickle_nbytes)
        self.capped = self.stop < stop
        self.limits = limits
        self.most_nbytes = int(limits.room * _SHARE)
        self.data = b""
        self.pos = 0
        self.base = start
        self._chunk = _FIRST_NBYTES

    @property
    def nbytes(self) -> int:
        """What was made of the stream so far takes in memory; of the window alone, nothing that stays."""
        return 0

    @property
    def position(self) -> int:
        """Absolute offset of the next byte."""
        return self.base + self.pos

    def _more(self, n: int) -> None:
        """Make at least n bytes available at `pos`, or raise Broken."""
        at = self.position
        if at + n > self.stop:
            if self.capped:
                raise OverLimit(f"the pickle is longer than {self.limits.pickle_nbytes:,} bytes")
            raise Broken(f"the stream ends at byte {self.stop:,}, but {n:,} bytes are needed at byte {at:,}")
        want = min(max(n, self._chunk), self.stop - at)
        self._chunk = min(self._chunk * 2, _MOST_NBYTES)
        kept = self.data[self.pos :]
        self.data = kept + self.source.read(at + len(kept), want - len(kept)) if len(kept) < want else kept
        self.base = at
        self.pos = 0

    def refill(self) -> None:
        """Make the next byte available, or raise Broken."""
        self._more(1)

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        end = self.pos + n
        if end > len(self.data):
            if n > self.limits.text_nbytes:
                raise OverLimit(f"a constant of {n:,} bytes is over the limit of {self.limits.text_nbytes:,}")
            if n > _FIRST_NBYTES and _COPIES * n > self.most_nbytes - self.nbytes:
                raise OverLimit(f"a constant of {n:,} bytes, for which there is not enough memory left")
            self._more(n)
            end = self.pos + n
        part = self.data[self.pos : end]
        self.pos = end
        return part

    def long_bytes(self, n: int, *, keep_below: int = 4096) -> bytes | BytesAt:
        """n bytes of a constant; long ones are left in the file."""
        if n < keep_below:
            return self.take(n)
        at = self.position
        if at + n > self.stop:
            raise Broken(f"the stream ends at byte {self.stop:,}, inside a constant of {n:,} bytes at byte {at:,}")
        if self.pos + n <= len(self.data):
            self.pos += n
        else:
            self.data, self.pos, self.base = b"", 0, at + n
        return BytesAt(at, n)

    def skip(self, n: int) -> BytesAt:
        """n bytes that are no part of the pickle, nor of its limit, are left in the file. The caller has checked n."""
        at = self.position
        self.stop = min(self.whole, self.stop + n)
        self.capped = self.stop < self.whole
        if self.pos + n <= len(self.data):
            self.pos += n
        else:
            self.data, self.pos, self.base = b"", 0, at + n
        return BytesAt(at, n)

    def line(self) -> bytes:
        """Bytes up to the next line feed, without it."""
        while True:
            end = self.data.find(b"\n", self.pos)
            if end >= 0:
                part = self.data[self.pos : end]
                self.pos = end + 1
                return part
            have = len(self.data) - self.pos
            if have > _LINE_NBYTES:
                raise OverLimit(f"a line of more than {_LINE_NBYTES:,} bytes at byte {self.position:,}")
            if self.position + have >= self.stop:
                raise Broken(f"the stream ends at byte {self.stop:,}, inside a line")
            self._more(min(have + self._chunk, self.stop - self.position))
