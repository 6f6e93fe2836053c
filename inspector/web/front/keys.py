"""The start token: whoever has it gets a cookie, and every route asks for that cookie.

The token is printed when the server starts, as Jupyter does, and stands in an address once; the cookie is made from it
and holds nothing that opens another server. An operator may state it (INSPECTOR_TOKEN), or a password in its place
(INSPECTOR_PASSWORD), or the header that an authenticating proxy sets (INSPECTOR_USER_HEADER).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from inspector.errors import UsageError

_SHORTEST_PASSWORD = 12
# Wrong ones from one address in a minute, and addresses that are remembered.
_MOST_WRONG = 10
_MOST_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """secret: what a visitor shows once. is_password: a person chose it, and knows it. user_header: in lower case,
    what a proxy sets for whom it knows; "" for none."""

    secret: str
    is_password: bool = False
    user_header: str = ""

    @property
    def cookie(self) -> str:
        """What the browser keeps instead; the same after a restart with the same secret."""
        return hmac.new(self.secret.encode(), b"Model Inspector, cookie", hashlib.sha256).hexdigest()

    def opens(self, shown: str) -> bool:
        """Whether somebody showed the secret."""
        return hmac.compare_digest(self.secret.encode(), shown.encode("utf-8", "replace"))

    def has_cookie(self, shown: str) -> bool:
        """Whether a browser showed the cookie."""
        return hmac.compare_digest(self.cookie.encode(), shown.encode("utf-8", "replace"))


def key_from(environment: Mapping[str, str], *, needed: bool) -> Key | None:
    """What the operator stated; else a new token where one is needed, else None. Raises UsageError for a short one."""
    token, password = environment.get("INSPECTOR_TOKEN", ""), environment.get("INSPECTOR_PASSWORD", "")
    user_header = environment.get("INSPECTOR_USER_HEADER", "").strip().lower()
    for name, stated in (("INSPECTOR_TOKEN", token), ("INSPECTOR_PASSWORD", password)):
        if stated and len(stated) < _SHORTEST_PASSWORD:
            raise UsageError(f"{name} has {len(stated)} characters.", hint=f"Take {_SHORTEST_PASSWORD} or more.")
    if password:
        return Key(secret=password, is_password=True, user_header=user_header)
    if token or needed or user_header:
        return Key(secret=token or secrets.token_urlsafe(24), user_header=user_header)
    return None


@lru_cache(maxsize=1)
def code_key() -> Key:
    """Of this process: shown to a page by whoever started the server, who alone reads its terminal. 72 random bits."""
    return Key(secret=secrets.token_urlsafe(9))


def code_is_off(environment: Mapping[str, str]) -> bool:
    """Whether the operator forbids own code."""
    return environment.get("INSPECTOR_CODE", "").lower() in {"off", "0", "no", "false"}


class Attempts:
    """Wrong secrets by address, so that nobody tries a million of them."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def may_try(self, address: str) -> bool:
        """Whether fewer than ten were wrong within the last minute."""
        times = self._wrong.get(address)
        while times and time.monotonic() - times[0] > 60:
            times.popleft()
        return not times or len(times) < _MOST_WRONG

    def wrong(self, address: str) -> None:
        """One more was."""
        self._wrong.setdefault(address, deque(maxlen=_MOST_WRONG)).append(time.monotonic())
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
