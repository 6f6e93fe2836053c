"""Every request once: a number for it, a line about it where the operator wants one, and what is counted.

A line says which kind of route was asked for and never what stood in its path: that may be the name of a file, a
digest, which lets whoever has it look, or a token. Nothing of the query, of cookies or of other headers is in it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import TextIO

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inspector.web.front.counters import counters
from inspector.web.front.headers import with_headers
from inspector.web.front.paths import (
    DOWNLOAD_PATH,
    ENTER_PATH,
    HEALTH_PATH,
    LIVE_PATH,
    METRICS_PATH,
    READY_PATH,
    SLICES_PATH,
    STATIC_PATH,
    UPLOAD_PATH,
    path_below,
)

_LOG = logging.getLogger("inspector.web")
_REQUESTS, _SECONDS, _SENT, _TAKEN = (
    "inspector_requests_total",
    "inspector_request_seconds_total",
    "inspector_sent_bytes_total",
    "inspector_received_bytes_total",
)
counters.declare(_REQUESTS, "Answers by route and status; 101 is a page's WebSocket that was opened.")
counters.declare(_SECONDS, "Seconds from a request to the end of its answer, by route; of sockets, until they closed.")
counters.declare(_SENT, "Bytes of answers' bodies, by route.")
counters.declare(_TAKEN, "Bytes of requests' bodies, by route.")
# What a proxy in front may have called it.
_NUMBER = re.compile(r"[A-Za-z0-9_-]{8,64}")
_WHOLE = (UPLOAD_PATH, SLICES_PATH, ENTER_PATH, HEALTH_PATH, LIVE_PATH, READY_PATH, METRICS_PATH)
_FIRSTS = ("static", "media", "component", "auth", "oauth2callback")
_CORE = ("stream", "health", "host-config", "upload_file", "bidi-components", "script-health-check")


@dataclass(slots=True)
class _Told:
    """What was seen of one request."""

    status: int = 0
    sent_nbytes: int = 0
    received_nbytes: int = 0


class RequestLog:
    """Wraps the whole application, the gate included."""

    def __init__(self, app: ASGIApp, *, pages: Collection[str], base: str = "", lines: TextIO | None = None) -> None:
        """lines: where the lines go, None for nowhere."""
        self._app = app
        self._pages = frozenset(pages)
        self._base = base
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started, told = time.perf_counter(), _Told()
        stated = Headers(scope=scope).get("x-request-id", "")
        number = stated if _NUMBER.fullmatch(stated) else token_hex(8)

        async def receiving() -> Message:
            message = await receive()
            told.received_nbytes += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
            return message

        async def sending(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
                told.status = message.get("status", 101)
                headers = [*message.get("headers", ()), (b"x-request-id", number.encode())]
                message = {**message, "headers": headers}
            elif message["type"] == "websocket.close" and not told.status:
                told.status = 403
            told.sent_nbytes += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
            await send(message)

        try:
            await self._app(scope, receiving, sending)
        except Exception:
            if told.status or scope["type"] != "http":
                told.status = told.status or 500
                raise
            # Outside of here nobody would put our headers on the answer.
            _LOG.exception("unexpected error in request %s", number)
            answer = PlainTextResponse(f"The server met something it was not made for (request {number}).", 500)
            await answer(scope, receiving, with_headers(sending))
        finally:
            self._tell(scope, number, told, time.perf_counter() - started)

    def _tell(self, scope: Scope, number: str, told: _Told, seconds: float) -> None:
        route = route_of(path_below(self._base, str(scope["path"])), self._pages)
        counters.add(_REQUESTS, route=route, status=str(told.status))
        counters.add(_SECONDS, seconds, route=route)
        counters.add(_SENT, told.sent_nbytes, route=route)
        counters.add(_TAKEN, told.received_nbytes, route=route)
        if self._lines is None:
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "request": number,
            "method": scope.get("method", "GET") if scope.get("method", "GET") in _METHODS else "other",
            "route": route,
            "status": told.status,
            "milliseconds": round(seconds * 1000, 1),
            "received_bytes": told.received_nbytes,
            "sent_bytes": told.sent_nbytes,
        }
        print(json.dumps(line), file=self._lines, flush=True)


_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


def route_of(path: str, pages: Collection[str]) -> str:
    """Of which kind a path is, in few words of ours: "/overview", "/inspector/exports", "/media", "other"."""
    if path.strip("/") in ("", *pages):
        return f"/{path.strip('/')}"
    if path in _WHOLE:
        return path
    first, _, rest = path.strip("/").partition("/")
    for folder in (DOWNLOAD_PATH, STATIC_PATH):
        if path.startswith(f"{folder}/"):
            return folder
    if first in _FIRSTS:
        return f"/{first}"
    core = f"{first}/{rest}".partition("_stcore/")[2].partition("/")[0]
    return f"/_stcore/{core}" if core in _CORE else "other"


def lines_for(stated: str) -> TextIO | None:
    """Where the lines go, by what INSPECTOR_LOG says."""
    return sys.stdout if stated.strip().lower() == "json" else None
