"""Who a request is from, as far as that has to be known to share a server fairly: never who somebody is.

A browser gets a cookie with a number that only this server can make; without one, whoever comes from one address is one
visitor. Where a proxy names its users, a user is a visitor. Somebody who throws every cookie away is somebody new each
time: the limits of all visitors together hold then, and a proxy can limit addresses.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from inspector.web.store import the_store

_FILE = "visitors"
_NBYTES = 32


class Visitors:
    """secret: what the cookies are made with. user_header: in lower case, what a proxy sets for whom it knows."""

    def __init__(self, secret: bytes, *, user_header: str = "") -> None:
        self._secret = secret
        self._user_header = user_header

    def of(self, scope: Scope) -> str:
        """Whose request it is; "address " and the address where there is no better answer."""
        return self.known(Headers(scope=scope)) or f"address {(scope.get('client') or ('',))[0]}"

    def known(self, headers: Headers) -> str:
        """The same by what the browser or a proxy says, "" where neither does."""
        user = headers.get(self._user_header, "") if self._user_header else ""
        if user:
            return f"user {user}"
        held = [cookie_parser(line).get(cookie_name(headers), "") for line in headers.getlist("cookie")]
        known = next((value for value in held if self._is_ours(value)), "")
        return f"browser {known}" if known else ""

    def owner(self, headers: Headers) -> str:
        """What the store calls a visitor that is known, which tells nobody else anything; "" for one that is not."""
        known = self.known(headers)
        return self.signed(f"owner of files: {known}")[:24] if known else ""

    def new_cookie(self, scope: Scope, path: str) -> bytes:
        """What a Set-Cookie header says for a browser that has none. path: below which it is sent."""
        drawn = secrets.token_hex(16)
        headers = Headers(scope=scope)
        secure = "; Secure" if is_secure(scope, headers) else ""
        value = f"{drawn}.{self.signed(drawn)}"
        return f"{cookie_name(headers)}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}".encode("latin-1")

    def _is_ours(self, value: str) -> bool:
        drawn, _, signed = value.partition(".")
        return bool(drawn) and hmac.compare_digest(self.signed(drawn).encode(), signed.encode("utf-8", "replace"))

    def signed(self, drawn: str) -> str:
        """What only servers of these visitors can make of a text."""
        return hmac.new(self._secret, drawn.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]


@lru_cache(maxsize=1)
def own_visitors() -> Visitors:
    """Of this server."""
    header = os.environ.get("INSPECTOR_USER_HEADER", "").strip().lower()
    return Visitors(visitors_secret(os.environ, the_store().root), user_header=header)


def visitors_secret(environment: Mapping[str, str], folder: Path) -> bytes:
    """The same after a restart, so that pages that connect again are still who they were, and the same on all servers
    whose operator stated one token or password for them. folder: where one is kept otherwise."""
    stated = environment.get("INSPECTOR_PASSWORD") or environment.get("INSPECTOR_TOKEN")
    if stated:
        return hmac.new(stated.encode(), b"Model Inspector, visitors", hashlib.sha256).digest()
    path = folder / _FILE
    if path.is_file():
        if path.stat().st_size == _NBYTES:
            return path.read_bytes()
        path.unlink()
    fresh = folder / f"{_FILE}.{secrets.token_hex(4)}"
    fresh.touch(mode=0o600)
    fresh.write_bytes(secrets.token_bytes(_NBYTES))
    # Not in place of another server's that started at the same moment: its visitors would be nobody's.
    with suppress(FileExistsError):
        os.link(fresh, path)
    fresh.unlink()
    return path.read_bytes()


def cookie_name(headers: Headers, name: str = "inspector_visitor") -> str:
    """Cookies know no ports: two servers on one machine need two names. By the visitor's a proxy chooses the server;
    nginx knows no cookie with a hyphen in its name."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{name}-{port}" if port.isdigit() else name


def is_secure(scope: Scope, headers: Headers) -> bool:
    """Whether the browser came by https."""
    return scope.get("scheme") in ("https", "wss") or headers.get("x-forwarded-proto", "") == "https"
