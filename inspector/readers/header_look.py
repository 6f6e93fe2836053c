"""What a file is, from slices of it: for one whose bytes are on their way and whose owner can be asked for ranges.

Whoever has the file is asked for its head and its end, then for what the readers miss, a few times and a few bytes.
Only formats with an index are read so. Nothing says that the slices are those of the file that comes in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.checkpoint.sparse_source import BytesMissing, SparseSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError, UsageError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers.opening import detect_format, open_checkpoint
from inspector.units import counted, human_bytes

MOST_REQUESTS = 6
MOST_NBYTES = 4 << 20
#: Of one request.
MOST_RANGES = 512
HEAD_NBYTES = 128 * 1024
TAIL_NBYTES = 128 * 1024
# What is read on from a piece that is here is doubled each time; elsewhere little is read on, and a little before:
# small members of an archive lie right before its directory.
_ON_NBYTES = 256 * 1024
_ELSEWHERE_NBYTES = 32 * 1024
_BEFORE_NBYTES = 16 * 1024
_JOIN_NBYTES = 4096

Range = tuple[int, int]  # (offset, bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Ranges that are needed next, in the order in which their bytes are to come."""

    ranges: tuple[Range, ...]

    @property
    def nbytes(self) -> int:
        """Of all of them."""
        return sum(n for _, n in self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Nothing can be shown before the whole file is there. says: why, a sentence or two."""

    says: str


def first_ranges(size: int) -> tuple[Range, ...]:
    """What is needed of every file of that many bytes: its head and its end."""
    head = min(HEAD_NBYTES, size)
    tail = min(TAIL_NBYTES, size - head)
    return tuple((offset, n) for offset, n in ((0, head), (size - tail, tail)) if n)


class HeaderLook:
    """One file looked at by slices. wanted: what `take` is to be given next. requests, nbytes: taken so far."""

    def __init__(self, size: int, name: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source = SparseSource(size, name)
        self.wanted = Wanted(ranges=first_ranges(size))
        self.requests = 0
        self.nbytes = 0
        self._limits = limits
        self._on = _ON_NBYTES

    def take(self, data: bytes) -> Checkpoint | Wanted | Waits:
        """The bytes of `wanted`, one range behind the other; what comes of them.

        A checkpoint keeps its slices until its source is closed. Raises UsageError for other than so many bytes.
        """
        if len(data) != self.wanted.nbytes or not data:
            raise UsageError(f"{len(data):,} bytes came where {self.wanted.nbytes:,} were asked for.")
        self.requests += 1
        self.nbytes += len(data)
        at = 0
        for offset, n in self.wanted.ranges:
            self.source.add(offset, data[at : at + n])
            at += n
        outcome = self._open()
        if isinstance(outcome, Wanted):
            self.wanted = outcome
        return outcome

    def _open(self) -> Checkpoint | Wanted | Waits:
        source = self.source
        source.missing.clear()
        try:
            claim = detect_format(source, limits=self._limits)
            # A reader whose claim was about missing bytes may have said no for that.
            if claim is not None and not source.missing and claim[0].no_index:
                says = claim[0].says
                article = "An" if says[0] in "aeioAEIO" else "A"
                return Waits(says=f"{article} {says}: it is shown when all of it is here, as {claim[0].no_index}.")
            checkpoint = open_checkpoint(source, name=source.name, limits=self._limits)
        except BytesMissing:
            return self._next(source.missing)
        except ReadError as error:
            # What was caught on its way may have been the want of bytes.
            return self._next(source.missing) if source.missing else Waits(says=str(error))
        return self._next(source.missing) if source.missing else checkpoint

    def _next(self, missing: Sequence[Range]) -> Wanted | Waits:
        left = MOST_NBYTES - self.nbytes
        ranges = self._widened(missing, left)
        nbytes = sum(n for _, n in ranges)
        if self.requests >= MOST_REQUESTS or nbytes > left or len(ranges) > MOST_RANGES:
            needs = f"{counted(self.requests, 'request')} and {human_bytes(self.nbytes)}"
            return Waits(says=f"{needs} of it do not tell what is in it: that is shown when all of it is here.")
        return Wanted(ranges=ranges)

    def _widened(self, missing: Sequence[Range], left: int) -> tuple[Range, ...]:
        """What is missing, neighbours together; of a single range also what will be missed next."""
        joined: list[Range] = []
        for offset, n in sorted(missing):
            if joined and offset <= sum(joined[-1]) + _JOIN_NBYTES:
                start = joined[-1][0]
                joined[-1] = (start, max(sum(joined[-1]), offset + n) - start)
            else:
                joined.append((offset, n))
        if len(joined) == 1:
            wanted, n = joined[0]
            before = max(0, wanted - _BEFORE_NBYTES)
            # Where what is not here begins, as far as a little before.
            start, _ = self.source.gaps(before, wanted - before + 1)[-1]
            nbytes = _ELSEWHERE_NBYTES
            if not start or not self.source.gaps(start - 1, 1):
                nbytes, self._on = self._on, 2 * self._on
            end = min(max(wanted + n, start + nbytes), self.source.size, max(start + left, wanted + n))
            joined = [(start, end - start)]
        return tuple(gap for offset, n in joined for gap in self.source.gaps(offset, n))
