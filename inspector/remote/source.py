"""A file behind an http or https address, read by byte ranges (RFC 9110, section 14)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPMessage

from inspector.checkpoint.source import check_range
from inspector.errors import AddressError, FileChanged, LimitExceeded, NeedsWholeFile
from inspector.remote.address import WebAddress, parse_address
from inspector.remote.client import Answer, Client
from inspector.remote.kept import KeptRanges
from inspector.remote.policy import OWN, Policy
from inspector.remote.refusals import range_refusal, refusal, stated_length
from inspector.remote.spool import Spool

# The first request and the last bytes of a file are as large; what is read on from there is doubled up to the most.
_FIRST_NBYTES = 128 * 1024
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
_MOVED = (401, 403, 404, 410)
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_NO_RANGES = "The server of {} does not send parts of a file (no range requests)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """By what a file behind an address is known again. size: bytes. etag, modified: as the server says, "" for nothing.
    No digest of its content: a server may say what it likes."""

    size: int
    etag: str = ""
    modified: str = ""

    def differs(self, other: Identity) -> bool:
        """Whether something that both say is not the same."""
        if self.size != other.size:
            return True
        if self.etag and other.etag:
            return self.etag != other.etag
        return bool(self.modified and other.modified and self.modified != other.modified)


class HttpSource:
    """Random access over ranges. What was read lately is kept, a little is read ahead, the rest is fetched as asked.

    identity: what it was when it was opened; every later answer is compared with it. size: where a listing says it, so
    that nothing is fetched before it is read. distant: a round trip costs more than the bytes (`is_distant`).
    Raises AddressError for what cannot be asked, NeedsWholeFile for servers that do not send ranges, FileChanged for
    another file than the one that was opened, LimitExceeded over the policy's file_nbytes.
    """

    distant = True

    def __init__(
        self,
        address: str | WebAddress,
        *,
        name: str = "",
        client: Client | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.web = address if isinstance(address, WebAddress) else parse_address(address)
        self.name = name or self.web.name
        self.client = client or Client(OWN)
        self._at = self.web
        self._fetching = threading.Lock()
        self._kept = KeptRanges(_MOST_KEPT_NBYTES)
        self._ahead = _FIRST_NBYTES
        spool_nbytes = self.client.policy.spool_nbytes
        self._spool = Spool(spool_nbytes) if spool_nbytes else None
        self.identity = identity or self._first_look()
        if self.size > self.client.policy.file_nbytes:
            raise LimitExceeded(
                f"{self.name} has {self.size:,} bytes; the limit is {self.client.policy.file_nbytes:,}."
            )

    @property
    def size(self) -> int:
        return self.identity.size

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

    def warm(self) -> None:
        """Fetch the beginning, if nothing is there yet. Raises nothing: who reads it hears of it."""
        try:
            self.read(0, min(1, self.size))
        except (AddressError, LimitExceeded):
            return

    def close(self) -> None:
        """Let go of what is kept."""
        self._kept.clear()
        self._ahead = _FIRST_NBYTES

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self.web, self.name, self.client.policy, self.identity))

    def _first_look(self) -> Identity:
        answer = self._ask(0, _FIRST_NBYTES)
        if answer.status == 416 and stated_length(answer) == 0:  # An empty file has no first byte.
            return Identity(size=0)
        if answer.status == 416:
            raise range_refusal(answer, self.name)
        identity = self._identity(answer)
        if identity is None:
            raise NeedsWholeFile(_NO_RANGES.format(self.name), hint="Download the file and open it from disk.")
        self._kept.add(0, answer.body)
        if self._spool is not None:
            self._spool.add(0, answer.body)
        return identity

    def _identity(self, answer: Answer) -> Identity | None:
        """None where the answer is not what was asked for: a whole file that is no small one."""
        total = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if answer.status == 206 and total:
            return _told(int(total[3]), answer.headers)
        if answer.status == 200 and answer.whole:
            return _told(len(answer.body), answer.headers)  # A small file sent whole needs no ranges.
        return None

    def _ask(self, offset: int, n: int) -> Answer:
        headers = {"Range": f"bytes={offset}-{offset + n - 1}"}
        answer = self.client.get(self._at, most_nbytes=n, name=self.name, headers=headers)
        if answer.status in _MOVED and self._at != self.web:
            # Where it was sent to then holds for a while only: signed addresses end.
            answer = self.client.get(self.web, most_nbytes=n, name=self.name, headers=headers)
        if answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise AddressError(f"The server of {self.name} sends it packed, though it was asked not to.")
        if answer.status not in (200, 206, 416):
            raise refusal(answer, self.name)
        if answer.status == 206:
            self._check_place(answer, offset, n)
        self._at = answer.address
        return answer

    def _check_place(self, answer: Answer, offset: int, n: int) -> None:
        """Raises AddressError for other bytes than those that were asked for."""
        told = answer.headers.get("Content-Range", "").strip()
        place = _RANGE.fullmatch(told)
        asked = f"bytes {offset:,} to {offset + n - 1:,}"
        if place is None:
            if offset == 0 and told.startswith("bytes ") and told.endswith("/*"):
                raise NeedsWholeFile(f"The server of {self.name} does not say how long it is.")
            raise AddressError(f"The server of {self.name} sent {told[:60] or 'a part'!r} for {asked}.")
        first, last, total = (int(group) for group in place.groups())
        if first != offset or not first <= last < total or last - first >= n or len(answer.body) != last - first + 1:
            raise AddressError(
                f"The server of {self.name} sent bytes {first:,} to {last:,} of {total:,} ({len(answer.body):,} came) "
                f"for {asked}."
            )

    def _fetch(self, offset: int, n: int) -> bytes:
        """Exactly these bytes, of which none is fetched that lies on disk."""
        if self._spool is None:
            return self._fetch_anew(offset, n)
        found = bytearray(n)
        gaps = self._spool.fill(offset, found)
        for at, length in gaps:
            data = self._fetch_anew(at, length)
            self._spool.add(at, data)
            if length == n:
                return data
            found[at - offset : at - offset + length] = data
        return bytes(found)

    def _fetch_anew(self, offset: int, n: int) -> bytes:
        """Exactly these bytes, in one request where the server sends as much as it is asked for."""
        parts: list[bytes] = []
        while n:
            answer = self._ask(offset, n)
            if answer.status == 416:
                raise range_refusal(answer, self.name, self.size)
            now = self._identity(answer)
            if now is None:
                raise NeedsWholeFile(_NO_RANGES.format(self.name))
            if self.identity.differs(now):
                raise FileChanged(f"{self.name} changed at its address while it was read.", hint="Open it again.")
            body = answer.body[offset : offset + n] if answer.status == 200 else answer.body
            if not body:
                raise AddressError(f"The server of {self.name} sent nothing for bytes from {offset:,} on.")
            parts.append(body)
            offset += len(body)
            n -= len(body)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _pieces(self, offset: int, n: int) -> bytes:
        """These bytes: what is kept, and the rest in requests that each have an end."""
        found = bytearray(n)
        for start, length in self._kept.fill(offset, found):
            for at in range(start, start + length, _PIECE_NBYTES):
                nbytes = min(_PIECE_NBYTES, start + length - at)
                found[at - offset : at - offset + nbytes] = self._fetch(at, nbytes)
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
            self._ahead = _FIRST_NBYTES
            start = self.size - _TAIL_NBYTES if self.size - offset <= _TAIL_NBYTES else offset - _BEFORE_NBYTES
            start = min(first, max(0, start, before))
        end = min(self.size, max(offset + n, start + self._ahead))
        after = self._kept.start_after(sum(gaps[-1]) - 1)
        last = end if after is None else min(end, after)
        for i, (at, length) in enumerate(gaps):
            low = start if i == 0 else at
            high = max(last, at + length) if i == len(gaps) - 1 else at + length
            self._kept.add(low, self._fetch(low, high - low))
        found = self._kept.read(offset, n)
        # What is kept has an end, and another thread may have filled it meanwhile.
        return self._pieces(offset, n) if found is None else found


def _told(size: int, headers: HTTPMessage) -> Identity:
    return Identity(
        size=size, etag=headers.get("ETag", "").strip()[:300], modified=headers.get("Last-Modified", "").strip()[:100]
    )


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


def _reopen(web: WebAddress, name: str, policy: Policy, identity: Identity) -> HttpSource:
    return HttpSource(web, name=name, client=Client(policy), identity=identity)
