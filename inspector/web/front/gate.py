"""The first thing that a request meets, of every route, page, socket and upload; a plain ASGI class.

Streamlit's own check of hosts covers its socket alone, and Starlette's BaseHTTPMiddleware never sees a socket.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from inspector.web.front import words
from inspector.web.front.headers import refuse_socket, with_headers
from inspector.web.front.hosts import Hosts
from inspector.web.front.keys import Attempts, Key
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
from inspector.web.front.visitors import cookie_name, is_secure

TOKEN_FIELD = "token"
# Streamlit serves these whatever its settings say: an interface for programs, and its counters.
_CLOSED = (("_stcore", "agent"), ("_stcore", "metrics"))
# Below these somebody else knows what exists, and says 404 itself.
_FOLDERS = ("media", "component", "oauth2callback", "auth")
_OWN = (ENTER_PATH, UPLOAD_PATH, SLICES_PATH, HEALTH_PATH, LIVE_PATH, READY_PATH, METRICS_PATH)
_CORE = ("health", "host-config", "stream", "upload_file", "bidi-components", "script-health-check")
_MOST_FORM = 8_192  # bytes
_SAFE = ("GET", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """hosts: by which names the server may be asked for. key: what a visitor must have, None for nothing. pages: their
    paths, without slashes. files: at the top of Streamlit's own folder. open: paths that answer without a key.
    base: what stands before every path, "" or "/base"."""

    hosts: Hosts
    key: Key | None
    pages: Collection[str]
    files: Collection[str] = ()
    open: Collection[str] = ()
    base: str = ""


class Gate:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, *, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._attempts = Attempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        send = with_headers(send, self._rules.base)
        answer = self._refusal(scope)
        if answer is None and scope["type"] == "http":
            answer = await self._entrance(scope, receive)
        if answer is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await refuse_socket(scope, send, answer.status_code, "")
        else:
            await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why this server is not to be asked at all, or not by this site."""
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        if len(named) != 1 or not self._rules.hosts.has(named[0]):
            return HTMLResponse(
                words.refused("This server does not answer to that name. Its operator sets server.allowedHosts."), 421
            )
        if "content-length" in headers and "transfer-encoding" in headers:
            return PlainTextResponse("Two lengths for one request.", 400)
        origin = headers.get("origin")
        if origin is not None and not self._rules.hosts.is_own_site(origin, named[0]):
            return PlainTextResponse("Another site asked for this.", 403)
        path = self._path(scope)
        segments = tuple(segment for segment in path.split("/") if segment)
        if any(segments[at : at + 2] == closed for closed in _CLOSED for at in range(len(segments))):
            return PlainTextResponse("Not found", 404)
        if scope["type"] == "websocket":
            return None if self._may_enter(scope, headers) else PlainTextResponse("", 403)
        return None

    async def _entrance(self, scope: Scope, receive: Receive) -> Response | None:
        """The key, where one is asked for, and whether there is such a page."""
        path, key = self._path(scope), self._rules.key
        if key is not None and path == ENTER_PATH:
            return await self._enter(scope, receive, key)
        if key is not None and path not in self._rules.open:
            query = scope.get("query_string", b"").decode("latin-1")
            fields = parse_qsl(query, keep_blank_values=True)
            shown = [value for name, value in fields if name == TOKEN_FIELD]
            if shown and scope["method"] in _SAFE:
                return self._admit(scope, key, shown[-1], f"{self._rules.base}{path}?{query}")
            if not self._may_enter(scope, Headers(scope=scope)):
                if not self._is_page(path):
                    return PlainTextResponse("This server asks for a token.", 401)
                follow = f"{self._rules.base}{path}" + (f"?{query}" if query else "")
                return self._ask(key, follow, 401)
        if scope["method"] in _SAFE and not self._exists(path):
            return HTMLResponse(words.not_found(f"{self._rules.base}/"), 404)
        return None

    async def _enter(self, scope: Scope, receive: Receive, key: Key) -> Response:
        if scope["method"] != "POST":
            # The page that says "wrong" stands at this address: loaded again, it goes on to what was asked for.
            shown = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
            return RedirectResponse(_safe(shown.get("follow", ""), f"{self._rules.base}/"), 303)
        fields = dict(parse_qsl(await _body(receive), keep_blank_values=True))
        return self._admit(scope, key, fields.get("secret", ""), fields.get("follow", ""))

    def _admit(self, scope: Scope, key: Key, shown: str, follow: str) -> Response:
        """The cookie and the way on, without the secret in the address; or the question once more."""
        address = (scope.get("client") or ("", 0))[0]
        safe = _safe(follow)
        if not self._attempts.may_try(address):
            return self._ask(key, safe, 429, "Too many wrong ones. Wait a minute.")
        if not key.opens(shown):
            self._attempts.wrong(address)
            return self._ask(key, safe, 403, f"That is not the {'password' if key.is_password else 'token'}.")
        answer = RedirectResponse(safe, 303, headers={"cache-control": "no-store"})
        headers = Headers(scope=scope)
        answer.set_cookie(
            cookie_name(headers, "inspector"),
            key.cookie,
            path=f"{self._rules.base}/",
            httponly=True,
            samesite="lax",
            secure=is_secure(scope, headers),
        )
        return answer

    def _ask(self, key: Key, follow: str, status: int, says: str = "") -> Response:
        page = words.sign_in(f"{self._rules.base}{ENTER_PATH}", follow, is_password=key.is_password, says=says)
        return HTMLResponse(page, status, headers={"cache-control": "no-store"})

    def _may_enter(self, scope: Scope, headers: Headers) -> bool:
        key = self._rules.key
        if key is None:
            return True
        if key.user_header and headers.get(key.user_header, ""):
            return True
        held = [cookie_parser(line).get(cookie_name(headers, "inspector"), "") for line in headers.getlist("cookie")]
        return any(key.has_cookie(value) for value in held if value)

    def _path(self, scope: Scope) -> str:
        return path_below(self._rules.base, str(scope["path"]))

    def _is_page(self, path: str) -> bool:
        return path.strip("/") in ("", *self._rules.pages)

    def _exists(self, path: str) -> bool:
        """Whether something may answer; Streamlit itself shows its first page for every path."""
        first, _, rest = path.strip("/").partition("/")
        if first == "_stcore" or "_stcore" in rest.split("/"):
            # Beneath a deep link, too, where Streamlit's page looks for its server first.
            return path.partition("_stcore/")[2].partition("/")[0] in _CORE
        if first == "inspector":
            return path in _OWN or path.startswith((f"{DOWNLOAD_PATH}/", f"{STATIC_PATH}/"))
        return self._is_page(path) or path.strip("/") in self._rules.files or first in _FOLDERS


def _safe(follow: str, home: str = "/") -> str:
    """The way on, without the secret in it. Anything that could lead to another site ("//elsewhere", "/\\elsewhere")
    leads home."""
    safe = follow if follow.startswith("/") and "\\" not in follow and not follow.startswith("//") else home
    place, _, query = safe.partition("?")
    fields = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != TOKEN_FIELD]
    return f"{place}?{urlencode(fields)}" if fields else place


async def _body(receive: Receive) -> str:
    """Of a small form; "" for a longer one."""
    held = b""
    while len(held) <= _MOST_FORM:
        message = await receive()
        held += message.get("body", b"")
        if not message.get("more_body"):
            return held.decode("latin-1") if len(held) <= _MOST_FORM else ""
    return ""
