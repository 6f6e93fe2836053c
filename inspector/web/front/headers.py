"""What every answer tells the browser: whose scripts may run, who may frame the page, what a link gives away."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from starlette.types import Message, Scope, Send

from inspector.web.front.index_page import with_script

# Scripts that stand in a page itself: those with a src are files of ours.
_INLINE = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


# Of ASGI, the first message of every kind of answer: a socket has one when it is opened, and one when it is refused.
_FIRST = ("http.response.start", "websocket.accept", "websocket.http.response.start")


def with_headers(send: Send, base: str = "") -> Send:
    """The same, with our headers on whatever is answered. base: what stands before every path, "" or "/base"."""
    ours = page_headers(base)
    names = {name for name, _ in ours}

    async def sending(message: Message) -> None:
        if message["type"] in _FIRST:
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in names]
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return sending


async def refuse_socket(scope: Scope, send: Send, status: int, says: str) -> None:
    """Answer a handshake with a status and a sentence; where the server cannot, with 403 and nothing."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    body = says.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


@lru_cache(maxsize=4)
def page_headers(base: str = "") -> tuple[tuple[bytes, bytes], ...]:
    """(name, value) of each, for the installed Streamlit."""
    from streamlit import file_util

    index = Path(file_util.get_static_dir(), "index.html")
    return headers_for(with_script(index.read_bytes(), base) if index.is_file() else b"")


def headers_for(index: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """index: the page whose own scripts may run, by their digests."""
    digests = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE.findall(index)]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests), "blob:"])
    # blob: is where Streamlit keeps the modules of its own components; 'unsafe-inline' of styles is Plotly's need.
    policy = {
        "default-src": "'self'",
        "script-src": scripts,
        "worker-src": "'self' blob:",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    values = {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "x-content-type-options": "nosniff",
        # A link to an upload carries its digest, which nobody else should learn. "no-referrer" would hide the origin of
        # our own form, too.
        "referrer-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
    }
    return tuple((name.encode(), value.encode()) for name, value in values.items())
