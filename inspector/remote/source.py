"""A file behind an http or https address, read by byte ranges (RFC 9110, section 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import HTTPMessage

from inspector.errors import AddressError, FileChanged, LimitExceeded, NeedsWholeFile
from inspector.remote.address import WebAddress, parse_address
from inspector.remote.client import Answer, Client
from inspector.remote.policy import OWN, Policy
from inspector.remote.ranged import FIRST_NBYTES, RangedSource
from inspector.remote.refusals import range_refusal, refusal, stated_length
from inspector.remote.spool import Spool

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


class HttpSource(RangedSource):
    """Random access over ranges. What was read lately is kept, a little is read ahead, the rest is fetched as asked.

    identity: what it was when it was opened; every later answer is compared with it. size: where a listing says it, so
    that nothing is fetched before it is read. distant: a round trip costs more than the bytes (`is_distant`).
    Raises AddressError for what cannot be asked, NeedsWholeFile for servers that do not send ranges, FileChanged for
    another file than the one that was opened, LimitExceeded over the policy's file_nbytes.
    """

    def __init__(
        self,
        address: str | WebAddress,
        *,
        name: str = "",
        client: Client | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.web = address if isinstance(address, WebAddress) else parse_address(address)
        super().__init__(name or self.web.name)
        self.client = client or Client(OWN)
        self._at = self.web
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

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self.web, self.name, self.client.policy, self.identity))

    def _first_look(self) -> Identity:
        answer = self._ask(0, FIRST_NBYTES)
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

    def _ask(self, offset: int, n: int, *, most_nbytes: int = 0) -> Answer:
        """most_nbytes: that are taken of an answer that is not held to the range."""
        headers = {"Range": f"bytes={offset}-{offset + n - 1}"}
        most = max(n, most_nbytes)
        answer = self.client.get(self._at, most_nbytes=most, name=self.name, headers=headers)
        if answer.status in _MOVED and self._at != self.web:
            # Where it was sent to then holds for a while only: signed addresses end.
            answer = self.client.get(self.web, most_nbytes=most, name=self.name, headers=headers)
        if answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise AddressError(f"The server of {self.name} sends it packed, though it was asked not to.")
        if answer.status not in (200, 206, 416):
            raise refusal(answer, self.name, passwords=self.client.policy.passwords)
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
                self._met_change = True
                raise FileChanged(f"{self.name} changed at its address while it was read.", hint="Open it again.")
            body = answer.body[offset : offset + n] if answer.status == 200 else answer.body
            if not body:
                raise AddressError(f"The server of {self.name} sent nothing for bytes from {offset:,} on.")
            parts.append(body)
            offset += len(body)
            n -= len(body)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def ask_identity(web: WebAddress, client: Client) -> Identity:
    """By what the file there is known again, for one byte of it. Raises as `HttpSource`."""
    probe = HttpSource(web, client=client, identity=Identity(size=1))
    answer = probe._ask(0, 1, most_nbytes=FIRST_NBYTES)
    if answer.status == 416 and stated_length(answer) == 0:
        return Identity(size=0)
    if answer.status == 416:
        raise range_refusal(answer, probe.name)
    identity = probe._identity(answer)
    if identity is None:
        raise NeedsWholeFile(_NO_RANGES.format(probe.name), hint="Download the file and open it from disk.")
    return identity


def _told(size: int, headers: HTTPMessage) -> Identity:
    return Identity(
        size=size, etag=headers.get("ETag", "").strip()[:300], modified=headers.get("Last-Modified", "").strip()[:100]
    )


def _reopen(web: WebAddress, name: str, policy: Policy, identity: Identity) -> HttpSource:
    return HttpSource(web, name=name, client=Client(policy), identity=identity)
