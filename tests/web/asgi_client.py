"""Calls an application's routes as a server would, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

# Of a body, so that nothing depends on its coming in one piece.
_PIECE = 7


@dataclass(frozen=True)
class Answer:
    """headers: by lower-case name; of several of one name the last."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def says(self) -> str:
        return str(json.loads(self.body)["says"])


class Client:
    """host: of every request that has no Host header of its own. cookies: sent with every request, and kept."""

    def __init__(self, app: ASGIApp, *, host: str = "here.test") -> None:
        self.app = app
        self.host = host
        self.cookies: dict[str, str] = {}

    def get(self, address: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", address, headers=headers)

    def ask(
        self,
        method: str,
        address: str,
        data: bytes = b"",
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> Answer:
        sent: list[dict[str, Any]] = []
        parts = [data[i : i + _PIECE] for i in range(0, len(data), _PIECE)] or [b""]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(self._scope("http", address, headers) | {"method": method}, receive, send))
        found = {name.decode().lower(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        if "set-cookie" in found:
            name, _, value = found["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return Answer(sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))

    def connect(self, address: str, headers: Mapping[str, str] | None = None) -> str:
        """The first text of a socket, "" where it is closed without one."""
        waiting: list[dict[str, Any]] = [{"type": "websocket.connect"}]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(self._scope("websocket", address, headers), receive, send))
        return next((str(m["text"]) for m in sent if m.get("text")), "")

    def knock(self, address: str, headers: Mapping[str, str] | None = None) -> Answer:
        """How a handshake is answered; 101 where it is accepted."""
        waiting: list[dict[str, Any]] = [{"type": "websocket.connect"}]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = self._scope("websocket", address, headers) | {"extensions": {"websocket.http.response": {}}}
        asyncio.run(self.app(scope, receive, send))
        found = {name.decode().lower(): value.decode("latin-1") for name, value in sent[0].get("headers", ())}
        return Answer(sent[0].get("status", 101), found, b"".join(m.get("body", b"") for m in sent[1:]))

    def _scope(
        self, kind: str, address: str, headers: Mapping[str, str] | Iterable[tuple[str, str]] | None
    ) -> dict[str, Any]:
        path, _, query = address.partition("?")
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers or ())
        names = {name.lower() for name, _ in pairs}
        if "host" not in names:
            pairs.append(("host", self.host))
        if self.cookies and "cookie" not in names:
            pairs.append(("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items())))
        return {
            "type": kind,
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in pairs],
            "scheme": "http" if kind == "http" else "ws",
            "server": ("here.test", 80),
            "client": ("127.0.0.1", 50_000),
            "root_path": "",
            "subprotocols": [],
        }
