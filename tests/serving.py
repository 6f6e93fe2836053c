"""A web server on this machine that speaks ranges, counts what it is asked, and may do so badly."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. path: with its query. span: the Range field."""

    path: str
    span: str
    headers: Message


@dataclass
class Server:
    """files: by path. odd: what answers in place of the usual for a path; it may return True to go on as usual.
    log: what was asked. sent: bytes of bodies. connections: that were taken. base: "http://127.0.0.1:port"."""

    base: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    odd: dict[str, Callable[[Handler], bool | None]] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)
    sent: int = 0
    connections: int = 0
    etags: bool = True

    def paths(self) -> list[str]:
        """What was asked for, in order, without queries."""
        return [asked.path.partition("?")[0] for asked in self.log]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Test", ""
    disable_nagle_algorithm = True
    told: Server

    def setup(self) -> None:
        super().setup()
        self.told.connections += 1

    def do_GET(self) -> None:
        self.told.log.append(Asked(self.path, self.headers.get("Range", ""), self.headers))
        path = self.path.partition("?")[0]
        odd = self.told.odd.get(path)
        if odd is not None and not odd(self):
            return
        body = self.told.files.get(path)
        if body is None:
            self.answer(404, b"")
        else:
            self.answer_range(body)

    def answer_range(self, body: bytes) -> None:
        """As a server that knows ranges."""
        etag = {"ETag": f'"{hash(body):x}"'} if self.told.etags else {}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None:
            self.answer(200, body, etag)
        elif int(asked[1]) >= len(body):
            self.answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
        else:
            first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
            place = {"Content-Range": f"bytes {first}-{last}/{len(body)}"}
            self.answer(206, body[first : last + 1], etag | place)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """A whole answer."""
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.told.sent += len(body)
        self.wfile.write(body)

    def redirect(self, where: str, status: int = 302) -> None:
        """To somewhere else."""
        self.answer(status, b"", {"Location": where})

    def log_message(self, *args: Any) -> None:
        return None


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        return None  # A client that goes away in the middle is what some tests are about.


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for as long as the block runs."""
    told = Server()
    served = _Quiet(("127.0.0.1", 0), type("Own", (Handler,), {"told": told}))
    scheme = "http"
    if context is not None:
        served.socket = context.wrap_socket(served.socket, server_side=True)
        scheme = "https"
    told.base = f"{scheme}://127.0.0.1:{served.server_port}"
    thread = threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        served.shutdown()
        served.server_close()
        thread.join()
