"""A file that is read by ranges, each of which costs a round trip: what was read is kept, a little is read ahead."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from inspector.checkpoint.source import check_range
from inspector.errors import AddressError, LimitExceeded
from inspector.remote.kept import KeptRanges

# The first request and the last bytes of a file are as large; what is read on from there is doubled up to the most.
FIRST_NBYTES = 128 * 1024
_TAIL_NBYTES = 128 * 1024
_BEFORE_NBYTES = 16 * 1024
_MOST_AHEAD_NBYTES = 4 << 20
# More is asked for in pieces, so that each has an end and one that breaks off costs little.
_PIECE_NBYTES = 8 << 20
# Larger reads are numbers, which nobody reads twice.
_KEPT_NBYTES = 1 << 20
_MOST_KEPT_NBYTES = 24 << 20
_JOIN_NBYTES = 256 * 1024
_AT_ONCE = 6


class RangedSource(ABC):
    """Random access over ranges (`ByteSource`); how one is fetched, and how long the file is, its kind knows.

    distant: a round trip costs more than the bytes (`is_distant`). failed: whether its server once did not send what it
    was asked for, also where whoever read it passed over that.
    """

    distant = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._fetching = threading.Lock()
        self._kept = KeptRanges(_MOST_KEPT_NBYTES)
        self._ahead = FIRST_NBYTES
        self._met_change = False
        self.failed = False

    @property
    @abstractmethod
    def size(self) -> int:
        """Length in bytes."""

    @abstractmethod
    def _fetch(self, offset: int, n: int) -> bytes:
        """Exactly these bytes, in one request where the server sends as much as it is asked for."""

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        if n == 0:
            return b""
        if n > _KEPT_NBYTES:
            return self._pieces(offset, n)
        found = self._kept.read(offset, n)
        if found is not None:
            return found
        with self._fetching:
            found = self._kept.read(offset, n)
            return self._read_ahead(offset, n) if found is None else found

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Ranges less than 256 kB apart are fetched together, and several of them at the same time."""
        wanted = list(ranges)
        answers: list[bytes] = [b""] * len(wanted)
        left: list[int] = []
        for i, (offset, n) in enumerate(wanted):
            check_range(self.name, self.size, offset, n)
            known = self._kept.read(offset, n) if n else b""
            if known is None:
                left.append(i)
            else:
                answers[i] = known
        groups = _joined(wanted, left)

        def fetch(group: Sequence[int]) -> None:
            start = wanted[group[0]][0]
            nbytes = max(sum(wanted[i]) for i in group) - start
            if len(groups) == 1 and nbytes <= _KEPT_NBYTES:
                block = self.read(start, nbytes)
            else:
                block = self._pieces(start, nbytes)
                # What lies between headers is asked for next, as often as not.
                if max(wanted[i][1] for i in group) <= _KEPT_NBYTES:
                    self._kept.add(start, block)
            for i in group:
                at = wanted[i][0] - start
                answers[i] = block[at : at + wanted[i][1]]

        if len(groups) < 2:
            for group in groups:
                fetch(group)
            return answers
        with ThreadPoolExecutor(min(_AT_ONCE, len(groups)), thread_name_prefix="inspector-ranges") as pool:
            for done in [pool.submit(fetch, group) for group in groups]:
                done.result()
        return answers

    def changed(self) -> bool:
        """Whether what was read may be of two contents, also where whoever read it passed over that.

        Raises AddressError where its server does not say it.
        """
        return self._met_change

    def warm(self) -> None:
        """Fetch the beginning, if nothing is there yet. Raises nothing: who reads it hears of it."""
        try:
            self.read(0, min(1, self.size))
        except (AddressError, LimitExceeded):
            return

    def close(self) -> None:
        """Let go of what is kept."""
        self._kept.clear()
        self._ahead = FIRST_NBYTES

    def _fetched(self, offset: int, n: int) -> bytes:
        try:
            return self._fetch(offset, n)
        except AddressError:
            self.failed = True
            raise

    def _pieces(self, offset: int, n: int) -> bytes:
        """These bytes: what is kept, and the rest in requests that each have an end."""
        found = bytearray(n)
        for start, length in self._kept.fill(offset, found):
            for at in range(start, start + length, _PIECE_NBYTES):
                nbytes = min(_PIECE_NBYTES, start + length - at)
                found[at - offset : at - offset + nbytes] = self._fetched(at, nbytes)
        return bytes(found)

    def _read_ahead(self, offset: int, n: int) -> bytes:
        """These bytes, and around them what will be asked for next: on from what is kept, or a little before.

        Small members of an archive lie right before its directory. Nothing that is kept is fetched again.
        """
        gaps = self._kept.gaps(offset, n)
        first, before = gaps[0][0], self._kept.end_before(offset)
        if before >= first > 0:
            self._ahead = min(2 * self._ahead, _MOST_AHEAD_NBYTES)
            start = first
        else:
            self._ahead = FIRST_NBYTES
            start = self.size - _TAIL_NBYTES if self.size - offset <= _TAIL_NBYTES else offset - _BEFORE_NBYTES
            start = min(first, max(0, start, before))
        end = min(self.size, max(offset + n, start + self._ahead))
        after = self._kept.start_after(sum(gaps[-1]) - 1)
        last = end if after is None else min(end, after)
        for i, (at, length) in enumerate(gaps):
            low = start if i == 0 else at
            high = max(last, at + length) if i == len(gaps) - 1 else at + length
            self._kept.add(low, self._fetched(low, high - low))
        found = self._kept.read(offset, n)
        # What is kept has an end, and another thread may have filled it meanwhile.
        return self._pieces(offset, n) if found is None else found


def _joined(wanted: Sequence[tuple[int, int]], which: Iterable[int]) -> list[list[int]]:
    """Groups of ranges that lie near each other, none of a group longer than a piece unless one range is."""
    groups: list[list[int]] = []
    start = end = 0
    for i in sorted(which, key=lambda i: wanted[i]):
        offset, n = wanted[i]
        if groups and offset <= end + _JOIN_NBYTES and max(end, offset + n) - start <= _PIECE_NBYTES:
            groups[-1].append(i)
            end = max(end, offset + n)
        else:
            groups.append([i])
            start, end = offset, offset + n
    return groups
