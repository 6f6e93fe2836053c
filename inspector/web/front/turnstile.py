"""How many may be inside at the same time: open pages and uploads, of everybody and of each visitor."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inspector.units import counted
from inspector.web.front import words
from inspector.web.front.counters import counters
from inspector.web.front.draining import Draining
from inspector.web.front.headers import refuse_socket
from inspector.web.front.paths import DOWNLOAD_PATH, UPLOAD_PATH, path_below
from inspector.web.front.variables import Limits
from inspector.web.front.visitors import Visitors

REFUSED = "inspector_refused_total"
counters.declare(REFUSED, "Connections and uploads that were refused, by why.")
_AGAIN_SECONDS = 30


class Inside:
    """Who is inside, each as often as they came."""

    def __init__(self, most: int, most_each: int) -> None:
        self.most = most
        self.most_each = most_each
        self._count: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._count.total()

    def __contains__(self, visitor: str) -> bool:
        return visitor in self._count

    def refusal(self, visitor: str) -> str:
        """`all` where nobody has room, `visitor` where this one has not, else nothing."""
        if self._count[visitor] >= self.most_each:
            return "visitor"
        return "all" if len(self) >= self.most else ""

    def enter(self, visitor: str) -> None:
        """One more of this visitor's."""
        self._count[visitor] += 1

    def leave(self, visitor: str) -> None:
        """One less."""
        self._count[visitor] -= 1
        if self._count[visitor] <= 0:
            del self._count[visitor]


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """pages: their paths, without slashes. base: what stands before every path, "" or "/base"."""

    limits: Limits
    visitors: Visitors
    draining: Draining
    pages: Collection[str] = ()
    base: str = ""


class Turnstile:
    """Wraps what lies behind the gate."""

    def __init__(self, app: ASGIApp, *, house: House) -> None:
        self._app = app
        self._house = house
        limits = house.limits
        self.pages = Inside(limits.connections, limits.connections_each)
        self.uploads = Inside(limits.uploads, limits.uploads_each)
        counters.gauge("inspector_connections_open", "Open pages.", lambda: len(self.pages))
        counters.gauge("inspector_uploads_open", "Uploads under way.", lambda: len(self.uploads))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._page(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, inside: Inside, visitor: str) -> str:
        """Why this visitor is not let in now, "" for nothing."""
        return "draining" if self._house.draining.has_begun else inside.refusal(visitor)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._house.visitors.of(scope)
        why = self._refusal(self.pages, visitor)
        if why:
            counters.add(REFUSED, what="connection", why=why)
            await refuse_socket(scope, send, _status(why), _says_of_pages(why, self.pages))
            return
        self.pages.enter(visitor)
        try:
            await self._app(scope, receive, send)
        finally:
            self.pages.leave(visitor)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_below(self._house.base, str(scope["path"]))
        if path == UPLOAD_PATH and scope["method"] == "PUT":
            await self._upload(scope, receive, send)
            return
        if path.startswith(f"{DOWNLOAD_PATH}/"):
            await self._transfer(scope, receive, send)
            return
        if scope["method"] == "GET" and path.strip("/") in ("", *self._house.pages):
            visitor = self._house.visitors.of(scope)
            why = self._refusal(self.pages, visitor)
            # Who is inside already may load a page again, whose socket is still open then.
            if why in ("visitor", "draining") or (why and visitor not in self.pages):
                counters.add(REFUSED, what="page", why=why)
                page = words.refused(_says_of_pages(why, self.pages))
                answer = HTMLResponse(page, _status(why), headers={"retry-after": str(_AGAIN_SECONDS)})
                await answer(scope, receive, send)
                return
            if visitor.startswith("address "):
                send = self._with_cookie(scope, send)
        await self._app(scope, receive, send)

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._house.visitors.of(scope)
        why = self._refusal(self.uploads, visitor)
        if why:
            counters.add(REFUSED, what="upload", why=why)
            answer: Response = JSONResponse(
                {"says": _says_of_uploads(why, self.uploads)}, _status(why), {"retry-after": str(_AGAIN_SECONDS)}
            )
            await answer(scope, receive, send)
            return
        self.uploads.enter(visitor)
        try:
            await self._transfer(scope, receive, send)
        finally:
            self.uploads.leave(visitor)

    async def _transfer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What may end though the server is about to; cut when its time has passed, and told so if nothing was yet."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with asyncio.timeout(None) as ends:
                with self._house.draining.transfer(ends):
                    await self._app(scope, receive, sending)
        except TimeoutError:
            if not ends.expired() or begun:
                raise
            answer = JSONResponse({"says": _says_of_uploads("draining", self.uploads)}, 503)
            await answer(scope, receive, send)

    def _with_cookie(self, scope: Scope, send: Send) -> Send:
        cookie = self._house.visitors.new_cookie(scope, f"{self._house.base}/")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"set-cookie", cookie)]}
            await send(message)

        return sending


def _status(why: str) -> int:
    return 429 if why == "visitor" else 503


def _says_of_pages(why: str, inside: Inside) -> str:
    if why == "draining":
        return "This server is about to end. Try again in a minute."
    if why == "visitor":
        count = counted(inside.most_each, "page")
        return f"You have {count} of this server open, the most it takes of one visitor. Close one."
    return f"This server has {counted(inside.most, 'page')} open, the most it takes. Load this one again in a minute."


def _says_of_uploads(why: str, inside: Inside) -> str:
    if why == "draining":
        return "The server is about to end. Drop the file again in a minute."
    if why == "visitor":
        count = counted(inside.most_each, "file")
        return f"You are uploading {count} already. Drop this one when one of them has arrived."
    return (
        f"This server takes {counted(inside.most, 'upload')} at a time, and has them. Drop the file again in a minute."
    )
