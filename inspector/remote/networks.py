"""Which numeric addresses are no public host: asked of every address that a name resolves to, before a connection.

Sources: IANA's registries of special-purpose IPv4 and IPv6 addresses (RFC 6890), and for addresses inside addresses
RFC 4291 (mapped), 3056 (6to4), 4380 (Teredo), 6052 and 8215 (NAT64), 5214 (ISATAP), 2765 (translated).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Ip = IPv4Address | IPv6Address

_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a provider (carrier-grade NAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        # A public number, and the door to what a machine at Azure may know of itself.
        ("168.63.129.16/32", "a cloud's own service"),
    )
)
_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
    )
)
_GLOBAL = IPv6Network("2000::/3")
_MAPPED, _COMPATIBLE = IPv6Network("::ffff:0:0/96"), IPv6Network("::/96")
_NAT64, _SIX_TO_FOUR = IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")
# Where clouds tell a machine, or a container in it, of itself: the link-local ones, AWS's by IPv6, Alibaba's, Azure's.
_TOLD = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "100.100.100.200",
        "168.63.129.16",
    )
)
# The two middle words of an interface that ISATAP made of an IPv4 address.
_ISATAP = (0x00005EFE, 0x02005EFE)


def why_not_public(address: Ip) -> str:
    """What kind of address it is that no public host has: "loopback", say; "" for a public one.

    An IPv4 address inside an IPv6 one counts as itself.
    """
    if isinstance(address, IPv4Address):
        return next((what for network, what in _V4 if address in network), "" if address.is_global else "reserved")
    if address.scope_id is not None:
        return "link-local"
    found = next((what for network, what in _V6 if address in network), "")
    if found:
        return found
    inner = _inside(address)
    if inner is not None:
        found = why_not_public(inner)
        return f"{found} ({inner} inside it)" if found else ""
    return "" if address in _GLOBAL and address.is_global else "reserved"


def tells_secrets(address: Ip) -> bool:
    """Whether a cloud tells its machines there what they are and their keys, in whatever form it is written."""
    inner = _inside(address) if isinstance(address, IPv6Address) else None
    return address in _TOLD or inner in _TOLD


def _inside(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if any(address in network for network in (_MAPPED, _COMPATIBLE, _NAT64)):
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(number & 0xFFFFFFFF)
    return None


def as_ip(text: str) -> Ip | None:
    """The address that a text is in its usual spelling; None for a name, and for a number spelt otherwise."""
    try:
        return ip_address(text.strip("[]"))
    except ValueError:
        return None
