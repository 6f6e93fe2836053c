"""The streaming upload: PUT a file's bytes, get its sha256 back; beside it, slices of the file for a first look.

Starlette routes for `st.App`.

Memory does not grow with the file: chunks go to disk as they come. Streamlit's XSRF check does not cover own routes,
so each request carries a token that the page got over its own connection, and its Origin must be ours.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from inspector.errors import InspectorError, NoRoom, UsageError
from inspector.readers.header_look import Waits, Wanted
from inspector.units import counted
from inspector.web.downloads import download_route, prefix
from inspector.web.front.paths import SLICES_PATH, UPLOAD_PATH
from inspector.web.front.probes import probe_routes
from inspector.web.front.rules import own_rules
from inspector.web.front.variables import own_limits
from inspector.web.front.visitors import own_visitors
from inspector.web.provisional import the_uploads
from inspector.web.static_files import static_route
from inspector.web.store import clean_name, the_store

_mounted = False
# Slices are read in threads of this process, so many at a time.
_reading = asyncio.Semaphore(2)


def issue_token(owner: str) -> str:
    """A token that lets `owner` upload: here, after a restart, and at every server that knows the same visitors."""
    return f"{owner}.{own_visitors().signed(f'uploads of: {owner}')}"


def owner_of(token: str) -> str | None:
    """Whose token it is; None for one that no server of these visitors issued."""
    owner = token.partition(".")[0]
    return owner if owner and hmac.compare_digest(token.encode(), issue_token(owner).encode()) else None


def is_mounted() -> bool:
    """Whether this process serves the route (it does not under a plain `streamlit run ui.py`)."""
    return _mounted


def routes() -> list[Route]:
    """What app.py mounts beside Streamlit's own routes."""
    global _mounted
    _mounted = True
    return [
        Route(prefix() + UPLOAD_PATH, take_upload, methods=["PUT"]),
        Route(prefix() + SLICES_PATH, take_slices, methods=["POST"]),
        *probe_routes(),
        download_route(),
        static_route(),
    ]


async def take_upload(request: Request) -> JSONResponse:
    """PUT with X-Inspector-Token and X-File-Name (percent-encoded), and X-Inspector-Upload where slices are sent
    beside. Answers {sha256, name, nbytes} or {says}."""
    owner = _owner(request)
    if isinstance(owner, JSONResponse):
        return owner
    upload = request.headers.get("x-inspector-upload", "")
    the_uploads().coming(owner, upload)
    try:
        return await _store(request, owner)
    finally:
        # The stored bytes count now, or there will be none.
        the_uploads().end(owner, upload)


async def _store(request: Request, owner: str) -> JSONResponse:
    store, name = the_store(), _name(request)
    try:
        length = _number(request.headers.get("content-length", ""))
        stored = await store.put_stream(_body(request), name=name, owner=owner, announced=length)
    except ClientDisconnect:
        return _refuse(499, "The upload was stopped.")
    except TimeoutError:
        return _refuse(408, f"Nothing came for {_idle_time()}. Drop the file again.")
    except NoRoom as error:
        return _refuse(507, str(error))
    except InspectorError as error:
        return _refuse(413, str(error))
    return JSONResponse({"sha256": stored.sha256, "name": name, "nbytes": stored.nbytes})


async def take_slices(request: Request) -> JSONResponse:
    """POST of the ranges that were asked for last, one behind the other; first `header_look.first_ranges`.

    Headers as of the upload, and X-File-Size. Answers {wants: [[offset, bytes], ...]}, {shows: true}, {waits: why}, or
    {says}.
    """
    owner = _owner(request)
    if isinstance(owner, JSONResponse):
        return owner
    upload = request.headers.get("x-inspector-upload", "")
    size = _number(request.headers.get("x-file-size", "")) or 0
    uploads = the_uploads()
    try:
        the_store().check_size(size)
        most = uploads.begin_round(owner, upload, name=_name(request), size=size)
    except UsageError as error:
        return _refuse(400, str(error))
    except NoRoom as error:
        return _refuse(429, str(error))
    except InspectorError as error:
        return _refuse(413, str(error))
    outcome = None
    try:
        data = await _bounded_body(request, most)
        async with _reading:
            outcome = await asyncio.to_thread(uploads.end_round, owner, upload, data)
    except ClientDisconnect:
        return _refuse(499, "The upload was stopped.")
    except TimeoutError:
        return _refuse(408, f"Nothing came for {_idle_time()}.")
    except UsageError as error:
        return _refuse(400, str(error))
    finally:
        if outcome is None:
            uploads.end(owner, upload)
    if isinstance(outcome, Wanted):
        return JSONResponse({"wants": outcome.ranges})
    return JSONResponse({"waits": outcome.says} if isinstance(outcome, Waits) else {"shows": True})


async def _bounded_body(request: Request, most: int) -> bytes:
    """All of it. Raises UsageError for more."""
    held = bytearray()
    async for chunk in _body(request):
        held += chunk
        if len(held) > most:
            raise UsageError(f"More came than the {most:,} bytes that were asked for.")
    return bytes(held)


def _owner(request: Request) -> str | JSONResponse:
    """Whose request it is, or why it is refused."""
    if not _is_own_site(request):
        return _refuse(403, "The upload came from another site.")
    owner = owner_of(request.headers.get("x-inspector-token", ""))
    if owner is None:
        return _refuse(403, "This page is older than the server. Reload it and drop the file again.")
    return owner


def _name(request: Request) -> str:
    return clean_name(unquote(request.headers.get("x-file-name", "")))


def _number(text: str) -> int | None:
    # Twenty digits are more than any file; Python refuses to read thousands of them.
    return int(text[:20]) if text.isdecimal() else None


async def _body(request: Request) -> AsyncIterator[bytes]:
    # A line that stands still keeps nothing open.
    chunks, seconds = aiter(request.stream()), own_limits().upload_idle_seconds
    while True:
        try:
            async with asyncio.timeout(seconds):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        if chunk:
            yield chunk


def _idle_time() -> str:
    return counted(own_limits().upload_idle_seconds, "second")


def _refuse(status: int, says: str) -> JSONResponse:
    return JSONResponse({"says": says}, status_code=status)


def _is_own_site(request: Request) -> bool:
    origin = request.headers.get("origin")
    # No browser leaves it out on PUT; the token still has to be right.
    return origin is None or own_rules().hosts.is_own_site(origin, request.headers.get("host", ""))
