"""Streamlit's page told where its server is, with a script of ours before its own.

On a deep link (/overview) its script looks for the server beneath the page's own path first, and leaves two 404s in
every visitor's console before it asks the right one. Told in `window.__streamlit`, it asks that one at once.
"""

from __future__ import annotations

import json
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FRESH = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
# Of the stored page, which ours is not any more.
_STALE = (b"content-length", b"etag", b"last-modified", b"accept-ranges")
_MOST = 1 << 20  # bytes; the page has some ten thousand
# In the page itself: it has to be there before Streamlit's script, and when the server is gone.
_EVERY_PAGE = (Path(__file__).parents[1] / "static" / "every_page.js").read_bytes()


def script_for(base: str) -> bytes:
    """What the page runs first. base: what stands before every path, "" or "/base"."""
    # As an operator sets it, so quoted; "<" could end the element.
    quoted = json.dumps(base).replace("<", "\\u003c")
    return f"window.__streamlit={{BACKEND_BASE_URL:window.location.origin+{quoted}}}\n".encode() + _EVERY_PAGE


def with_script(page: bytes, base: str) -> bytes:
    """The page with our script before all others; unchanged where it has none."""
    before, script, after = page.partition(b"<script")
    return before + b"<script>" + script_for(base) + b"</script>\n    " + script + after if script else page


class IndexPage:
    """Wraps the application. pages: paths of its pages, without slashes; base: as above."""

    def __init__(self, app: ASGIApp, *, pages: frozenset[str], base: str) -> None:
        self._app = app
        self._base = base
        self._paths = {f"{base}/{page}".rstrip("/") for page in {"", *pages}}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"].rstrip("/") not in self._paths:
            await self._app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _FRESH]
        start: Message | None = None
        body = b""

        async def collect(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and start is None and _is_page(message):
                start = message
                return
            if start is None or message["type"] != "http.response.body":
                await send(message)
                return
            body += message.get("body", b"")
            if message.get("more_body") and len(body) < _MOST:
                return
            page = with_script(body, self._base)
            kept = [(name, value) for name, value in start["headers"] if name.lower() not in _STALE]
            length = () if message.get("more_body") else ((b"content-length", str(len(page)).encode()),)
            begin, start, body = {**start, "headers": [*kept, *length]}, None, b""
            await send(begin)
            await send({**message, "body": page})

        await self._app({**scope, "headers": headers}, receive, collect)


def _is_page(message: Message) -> bool:
    kinds = [value for name, value in message.get("headers", ()) if name.lower() == b"content-type"]
    return message["status"] == 200 and any(kind.startswith(b"text/html") for kind in kinds)
