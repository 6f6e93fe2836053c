"""A balancer in front of several servers, as small as one can be: a connection for each request, by whichever server
the rule says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

_MOST_HEAD_NBYTES = 1 << 20


@dataclass(frozen=True)
class Head:
    """Of one request. line: its method, path and protocol. cookies: as the browser sent them."""

    line: str
    cookies: str
    is_page: bool

    @property
    def method(self) -> str:
        return self.line.partition(" ")[0]


class Proxy:
    """rule: which port a request goes to; of pages (WebSockets) as well. sent: (port, request) of each that reached
    one, in order. A server that is gone is passed over for the next one, as balancers do."""

    def __init__(self, ports: list[int], rule: Callable[[Head], int]) -> None:
        self.ports, self.rule = ports, rule
        self.sent: list[tuple[int, Head]] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, browser: socket.socket) -> None:
        with browser:
            raw = b""
            while b"\r\n\r\n" not in raw:
                chunk = browser.recv(65536)
                if not chunk or len(raw) > _MOST_HEAD_NBYTES:
                    return
                raw += chunk
            lines, _, rest = raw.partition(b"\r\n\r\n")
            fields = lines.decode("latin-1").split("\r\n")
            told = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields[1:])}
            is_page = told.get("upgrade", "").lower() == "websocket"
            head = Head(line=fields[0], cookies=told.get("cookie", ""), is_page=is_page)
            if not is_page:
                # One request a connection: the next one may go elsewhere.
                fields = [*(one for one in fields if not one.lower().startswith("connection:")), "Connection: close"]
            server = self._reach(head)
            if server is None:
                browser.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            with server:
                server.sendall("\r\n".join(fields).encode("latin-1") + b"\r\n\r\n" + rest)
                threading.Thread(target=_pass_on, args=(browser, server), daemon=True).start()
                _pass_on(server, browser)

    def _reach(self, head: Head) -> socket.socket | None:
        first = self.rule(head)
        for port in (first, *(other for other in self.ports if other != first)):
            try:
                server = socket.create_connection(("127.0.0.1", port), timeout=5)
            except OSError:
                continue
            server.settimeout(None)
            self.sent.append((port, head))
            return server
        return None


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    """What comes from the one goes to the other, until either ends."""
    try:
        with suppress(OSError):
            while chunk := one.recv(1 << 16):
                other.sendall(chunk)
    finally:
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)
