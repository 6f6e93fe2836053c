"""By which names this server may be asked for.

A page elsewhere can let its own name point at this machine (DNS rebinding) and then reads, in its visitor's browser,
whatever the server shows under that name. An address in digits cannot be pointed elsewhere; a name has to be known.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_ANY = {"", "0.0.0.0", "::"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """names: in lower case, "*.example.com" for all below it, "*" for every name. digits: whether any IP address will
    do, as it must where others reach this machine by one. origins: further sites that may ask, as "https://host"."""

    names: frozenset[str]
    digits: bool
    origins: frozenset[str] = frozenset()

    def has(self, header: str) -> bool:
        """Whether a Host header, with or without a port, is one of ours."""
        name = host_of(header).lower().removesuffix(".")
        if not name:
            return False
        if is_loopback(name) or "*" in self.names or name in self.names:
            return True
        if _is_address(name):
            return self.digits
        return any(pattern.startswith("*.") and name.endswith(pattern[1:]) for pattern in self.names)

    def is_own_site(self, origin: str, header: str) -> bool:
        """Whether an Origin header is that of a page of the server that a request with this Host header asks for."""
        try:
            place = urlsplit(origin)
        except ValueError:
            return False
        own = place.scheme in ("http", "https") and place.netloc.lower() == header.lower() != ""
        return own or origin.rstrip("/").lower() in self.origins


def hosts_of(address: str, allowed: Iterable[str], origins: Iterable[str] = ()) -> Hosts:
    """address: that the server listens on, "" for all. allowed: names that its operator states."""
    names = {name.strip().lower() for name in allowed}
    digits = not is_loopback(address)
    if address not in _ANY and not _is_address(address):
        names.add(address.lower())
    return Hosts(
        names=frozenset(names), digits=digits, origins=frozenset(origin.rstrip("/").lower() for origin in origins)
    )


def host_of(header: str) -> str:
    """Without its port: "[::1]:8501" is "::1". "" for what is no host."""
    if header.startswith("["):
        inside, closed, behind = header[1:].partition("]")
        return inside if closed and (not behind or _is_port(behind)) else ""
    name, colon, port = header.partition(":")
    return name if not colon or _is_port(colon + port) else ""


def is_loopback(name: str) -> bool:
    """Whether a name or address is this machine's own, as only this machine can ask for it."""
    if name.lower() == "localhost" or name.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return text[0] == ":" and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6
