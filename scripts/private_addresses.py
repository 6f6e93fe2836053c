"""Every form in which a private address can be written or reached, asked as by a visitor: docs/addresses.md.

`python scripts/private_addresses.py` prints the page; `tests/remote/test_private.py` holds that each row is refused and
that no connection was tried.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from inspector.errors import AddressError, AddressRefused
from inspector.remote import lines
from inspector.remote.client import Client
from inspector.remote.policy import VISITOR
from inspector.remote.source import HttpSource
from tests.serving import serving

_PUBLIC = "93.184.216.34"
_SENDS = "public.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """kind: how it hides. host: as it stands in the address. names: what a name stands for, one tuple for each time
    that it is asked for. redirect: whether a public server sends there."""

    kind: str
    host: str
    names: tuple[tuple[str, ...], ...] = ()
    redirect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """says: the sentence, "" where it was not refused. tried: numeric addresses that a connection was tried to."""

    form: Form
    says: str
    tried: tuple[str, ...]


def _forms(kind: str, *hosts: str) -> tuple[Form, ...]:
    return tuple(Form(kind=kind, host=host) for host in hosts)


FORMS: tuple[Form, ...] = (
    *_forms("IPv4", "127.0.0.1", "127.8.9.10", "10.0.0.7", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *_forms("IPv4, other networks of one's own", "0.0.0.0", "100.64.0.1", "169.254.1.1", "192.0.0.8", "198.18.0.1"),
    *_forms("IPv4, no host", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "203.0.113.9"),
    *_forms("a cloud's metadata", "169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    *_forms("decimal", "2130706433", "3232235777", "2852039166"),
    *_forms("octal", "0177.0.0.1", "017700000001"),
    *_forms("hexadecimal", "0x7f000001", "0x7f.0.0.1", "0xa9fea9fe"),
    *_forms("short or mixed", "127.1", "10.7", "0x7f.1", "0"),
    *_forms("digits of another script", "\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1"),
    *_forms("IPv6", "[::1]", "[::]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fec0::1]", "[ff02::1]"),
    *_forms("IPv4 mapped into IPv6", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]"),
    *_forms("IPv4 inside IPv6", "[::127.0.0.1]", "[::ffff:0:7f00:1]", "[2001:4860::5efe:7f00:1]"),
    *_forms("6to4", "[2002:7f00:1::]", "[2002:a00:7::1]"),
    *_forms("NAT64", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]"),
    *_forms("Teredo", "[2001:0:7f00:1::1]"),
    Form(kind="by name", host="localhost", names=(("127.0.0.1", "::1"),)),
    Form(kind="by name", host="inside.example", names=(("10.0.0.7",),)),
    Form(kind="by name", host="mapped.example", names=(("::ffff:192.168.1.1",),)),
    Form(kind="by a name with a public address, too", host="both.example", names=((_PUBLIC, "127.0.0.1"),)),
    Form(kind="by redirect", host="127.0.0.1", redirect=True),
    Form(kind="by redirect", host="[::ffff:169.254.169.254]", redirect=True),
    Form(kind="by redirect to a name", host="inside.example", names=(("192.168.0.2",),), redirect=True),
    Form(
        kind="by a name that stands for another address the second time",
        host="turns.example",
        names=((_PUBLIC,), ("127.0.0.1",)),
    ),
)


@contextmanager
def _world(form: Form, origin: str, tried: list[str]) -> Iterator[None]:
    """Names as the form has them, and no connection but to the one server that redirects."""
    answers = list(form.names)
    connect = socket.create_connection

    def resolve(host: str, port: int, seconds: float) -> tuple[str, ...]:
        del port, seconds
        if host == form.host and answers:
            return answers.pop(0) if len(answers) > 1 else answers[0]
        if host == _SENDS:
            return (_PUBLIC,)
        return (socket.inet_ntoa(socket.inet_aton(host)),)

    def create(place: tuple[str, int], timeout: float) -> socket.socket:
        if origin.endswith(f":{place[1]}"):
            return connect(("127.0.0.1", place[1]), timeout)
        tried.append(place[0])
        raise ConnectionRefusedError(111, "Connection refused")

    with patch.object(lines, "addresses_of", resolve), patch.object(socket, "create_connection", create):
        yield


def outcome_of(form: Form) -> Outcome:
    """Ask for it twice over one client, as a page that reads on does."""
    tried: list[str] = []
    says = ""
    with serving() as server:
        server.odd["/to"] = lambda handler: handler.redirect(f"http://{form.host}/model.safetensors")
        client = Client(replace(VISITOR, tries=1))
        # The redirecting server is on this machine, and taken for a public one.
        where = (
            f"{server.base.replace('127.0.0.1', _SENDS)}/to"
            if form.redirect
            else f"http://{form.host}/model.safetensors"
        )
        with _world(form, server.base, tried):
            for _ in range(2):
                try:
                    HttpSource(where, client=client)
                except AddressRefused as error:
                    says = error.says
                except AddressError:
                    continue
    return Outcome(form=form, says=says, tried=tuple(tried))


def outcomes() -> tuple[Outcome, ...]:
    """Of every form."""
    return tuple(outcome_of(form) for form in FORMS)


def addresses_page() -> str:
    """The page as Markdown."""
    rows = [f"| {one.form.kind} | `{one.form.host}` | {_said(one)} |" for one in outcomes()]
    return "\n".join(
        (
            "# Private addresses",
            "",
            "What the app answers to a visitor who types an address that is no public host's, in every form that we "
            "know of. Each was asked; to none of them was a connection tried. A name is resolved once, all that it "
            "stands for is checked, the connection goes to exactly that, and so at each redirect. The command line "
            "asks private addresses, which are its user's own, unless a public server redirects there, and so does the "
            "app with `INSPECTOR_PRIVATE_ADDRESSES=on`. Where a cloud tells its machines their keys (169.254.169.254, "
            "fd00:ec2::254, and those like them) no server's redirect leads, a private one's neither.",
            "",
            "| Hidden | Host | Answer |",
            "| --- | --- | --- |",
            *rows,
            "",
        )
    )


def _said(one: Outcome) -> str:
    return one.says or f"asked {' and '.join(dict.fromkeys(one.tried))} alone, each time: resolved once"


if __name__ == "__main__":
    print(addresses_page())
