"""An http or https address as a person or a server writes it, taken apart once: what is checked is what is asked."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote, urljoin, urlsplit

from inspector.errors import AddressRefused

_MOST = 8192
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9._-]{1,253}")
_V6 = re.compile(r"[0-9a-f:.]{2,45}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """scheme: http or https. host: in ASCII and lower case, without the brackets of an IPv6 address. target: path and
    query as they are sent. authorization: what a name and password in the address become, for this origin alone."""

    scheme: str
    host: str
    port: int
    target: str
    authorization: str = field(default="", repr=False, compare=False)

    @property
    def origin(self) -> str:
        """Scheme, host and port: who may get what is secret."""
        return f"{self.scheme}://{self.host_and_port}"

    @property
    def host_and_port(self) -> str:
        """As the Host field has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        """The whole address, without a name and password."""
        return self.origin + self.target

    @property
    def shown(self) -> str:
        """For a sentence: without its query, which often is a signature."""
        path, _, query = self.target.partition("?")
        return f"{self.origin}{path}"[:200] + ("?…" if query else "")

    @property
    def name(self) -> str:
        """The last part of its path, else its host."""
        path = unquote(self.target.partition("?")[0].rpartition("/")[2])
        # A slash that was escaped ends a name like any other: what stands before it may be another address.
        return path.rpartition("/")[2] or self.host_and_port


def is_web_address(where: object) -> bool:
    """Whether a text begins as an http or https address does."""
    return isinstance(where, str) and where[:8].lower().startswith(("http://", "https://"))


def parse_address(text: str) -> WebAddress:
    """Raises AddressRefused for what is no web address, or could be read in two ways."""
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    none = AddressRefused(f"{_hidden(shown)} is no web address (http or https).")
    if len(text) > _MOST or any(c <= " " or c in "\\\x7f" for c in text):
        raise none
    try:
        parts = urlsplit(text)
        port = parts.port
        host = (parts.hostname or "").lower()
        # Digits of other scripts become plain ones here, before anybody resolves them.
        host = host if ":" in host else host.encode("idna").decode("ascii").lower()
    except (ValueError, UnicodeError):  # brackets that hold no IPv6 address, a port that is no number
        raise none from None
    if parts.scheme not in _PORTS or not (_V6 if ":" in host else _HOST).fullmatch(host) or port == 0:
        raise none
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    secret = base64.b64encode(f"{user}:{password}".encode()).decode() if user or password else ""
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
    return WebAddress(
        scheme=parts.scheme,
        host=host,
        port=port or _PORTS[parts.scheme],
        target=path + query,
        authorization=f"Basic {secret}" if secret else "",
    )


def redirected(address: WebAddress, location: str, *, passwords: bool = True) -> WebAddress:
    """Where an answer sends to. What was secret goes along within the same origin only.

    passwords: whether it may bring a name and password, which are not sent either way. Raises AddressRefused.
    """
    try:
        text = urljoin(address.text, location)
    except ValueError:
        text = location
    try:
        found = parse_address(text)
    except AddressRefused:
        raise AddressRefused(
            f"{address.host_and_port} redirects to {_hidden(location[:60])}, which is no web address."
        ) from None
    if found.authorization and not passwords:
        raise AddressRefused(
            f"{address.host_and_port} redirects to an address with a name and password in it, which is not taken here."
        )
    return replace(found, authorization=address.authorization if found.origin == address.origin else "")


def _hidden(text: str) -> str:
    """Without what stands before an @, and without a query."""
    return re.sub(r"//[^/?#]*@", "//…@", text).partition("?")[0]
