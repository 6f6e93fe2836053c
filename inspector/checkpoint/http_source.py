"""A file behind an http or https address, read by byte ranges (RFC 9110, section 14)."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.parse import unquote, urlsplit

from inspector.checkpoint.source import check_range
from inspector.errors import LimitExceeded, ReadError

_HEAD_NBYTES = 256 * 1024
_TAIL_NBYTES = 128 * 1024
_JOIN_NBYTES = 64 * 1024
_MOST_NBYTES = 1 << 42
_TIMEOUT_SECONDS = 30.0


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:  # brackets that hold no IPv6 address
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https alone; urllib itself would also go to ftp."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if not _is_web_address(newurl):
            raise ReadError(f"The server redirects to {newurl[:60]}, which is no web address.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class HttpSource:
    """Random access over ranges; the head and the tail are fetched on opening and kept, nothing else is.

    Raises ReadError for addresses that are not http(s), for servers that do not answer ranges, and for files over
    most_nbytes.
    """

    def __init__(self, address: str, *, name: str = "", most_nbytes: int = _MOST_NBYTES) -> None:
        if not _is_web_address(address):
            raise ReadError(f"{address[:80]} is no web address (http or https).")
        parts = urlsplit(address)
        self.address = address
        self.name = name or unquote(parts.path.rpartition("/")[2]) or parts.netloc
        self.most_nbytes = most_nbytes
        self._lock = threading.Lock()
        # Only http and https handlers: no file:, ftp: or data: can be reached from here.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _SafeRedirects(),
        ):
            self._opener.add_handler(handler)
        self._kept: list[tuple[int, bytes]] = []
        self.size = 0
        head = self._fetch(0, _HEAD_NBYTES, opening=True)
        if self.size > most_nbytes:
            raise LimitExceeded(f"{self.name} has {self.size:,} bytes; the limit is {most_nbytes:,}.")
        self._kept.append((0, head))
        if self.size > len(head):
            start = max(len(head), self.size - _TAIL_NBYTES)
            self._kept.append((start, self._fetch(start, self.size - start)))

    def _fetch(self, offset: int, n: int, *, opening: bool = False) -> bytes:
        headers = {"Range": f"bytes={offset}-{offset + n - 1}", "Accept-Encoding": "identity"}
        request = urllib.request.Request(self.address, headers=headers)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                if opening:
                    self.size = self._size_of(answer.status, answer.headers)
                    n = min(n, self.size)
                elif answer.status != 206:
                    raise ReadError(f"The server of {self.name} does not send parts of a file.")
                data: bytes = answer.read(n)
        except urllib.error.HTTPError as error:
            if opening and error.code == 416:  # An empty file has no first byte.
                return b""
            raise ReadError(
                f"{self.name} cannot be fetched: the server answers {error.code} {error.reason}.",
                hint="Check the address.",
            ) from error
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ReadError(f"{self.name} cannot be fetched: {reason}.", hint="Check the address.") from error
        if len(data) != n:
            raise ReadError(f"The server of {self.name} sent {len(data):,} of {n:,} bytes.")
        return data

    def _size_of(self, status: int, headers: HTTPMessage) -> int:
        total = re.fullmatch(r"bytes \d+-\d+/(\d+)", headers.get("Content-Range", ""))
        if status == 206 and total:
            return int(total[1])
        length = headers.get("Content-Length", "")
        if status == 200 and length.isdigit() and int(length) <= _HEAD_NBYTES:
            return int(length)  # A small file sent whole needs no ranges.
        raise ReadError(
            f"The server of {self.name} does not send parts of a file (no range requests).",
            hint="Download the file and open it from disk.",
        )

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        if n == 0:
            return b""
        for start, data in self._kept:
            if start <= offset and offset + n <= start + len(data):
                return data[offset - start : offset - start + n]
        return self._fetch(offset, n)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Ranges less than 64 kB apart are fetched together."""
        wanted = list(ranges)
        order = sorted(range(len(wanted)), key=lambda i: wanted[i])
        answers: list[bytes] = [b""] * len(wanted)
        group: list[int] = []
        end = 0
        for i in [*order, -1]:
            if group and (i < 0 or wanted[i][0] > end + _JOIN_NBYTES):
                start = wanted[group[0]][0]
                block = self.read(start, end - start)
                for j in group:
                    answers[j] = block[wanted[j][0] - start : wanted[j][0] - start + wanted[j][1]]
                group, end = [], 0
            if i >= 0:
                group.append(i)
                end = max(end, sum(wanted[i]))
        return answers

    def close(self) -> None:
        return None

    def __reduce__(self) -> tuple[object, ...]:
        return (_reopen, (self.address, self.name, self.most_nbytes))


def _reopen(address: str, name: str, most_nbytes: int) -> HttpSource:
    return HttpSource(address, name=name, most_nbytes=most_nbytes)
