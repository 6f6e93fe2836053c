"""Private addresses in every form: refused, and not even connected to; public ones and the owner's own are asked."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest

from inspector.errors import AddressError, AddressRefused, NotPublic
from inspector.remote import lines
from inspector.remote.client import Client
from inspector.remote.networks import why_not_public
from inspector.remote.policy import OWN, VISITOR
from inspector.remote.source import HttpSource
from scripts.private_addresses import FORMS, Form, outcome_of
from tests.serving import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as told:
        told.files["/a.bin"] = b"abc"
        yield told


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind}: {form.host}")
def test_no_form_of_a_private_address_is_asked(form: Form) -> None:
    outcome = outcome_of(form)
    if form.host == "turns.example":
        assert outcome.tried == ("93.184.216.34", "93.184.216.34")
    else:
        assert outcome.tried == ()
        assert "no public address" in outcome.says.lower()


@pytest.mark.parametrize(
    "text",
    ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.63.255.255", "100.128.0.1", "2606:4700::1111", "2a00:1450::1",
     "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "192.0.1.1", "168.63.129.17"],
)  # fmt: skip
def test_public_addresses_are_public(text: str) -> None:
    assert why_not_public(ip_address(text)) == ""


def test_on_the_command_line_private_addresses_are_the_users_own(server: Server) -> None:
    assert HttpSource(f"{server.base}/a.bin", client=Client(OWN)).size == 3
    assert HttpSource(server.base.replace("127.0.0.1", "localhost") + "/a.bin", client=Client(OWN)).size == 3
    with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 is no public address \(loopback\)"):
        HttpSource(f"{server.base}/a.bin", client=Client(VISITOR))
    allowed = Client(replace(VISITOR, private=True))
    assert HttpSource(f"{server.base}/a.bin", client=allowed).size == 3


def test_a_public_server_sends_nobody_to_private_addresses(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on the command line either: its user typed a public name."""
    server.odd["/to"] = lambda handler: handler.redirect(f"{server.base}/a.bin")
    monkeypatch.setattr(lines, "addresses_of", lambda *_: ("93.184.216.34",))
    connect = lines.connect
    monkeypatch.setattr(lines, "connect", lambda at, numbers, *more: connect(at, ("127.0.0.1",), *more))
    where = server.base.replace("127.0.0.1", "public.example")
    for policy in (OWN, replace(VISITOR, private=True)):
        with pytest.raises(
            AddressRefused, match=r"public\.example, a public server, redirects .* 127\.0\.0\.1 is no public address"
        ) as error:
            HttpSource(f"{where}/to", client=Client(policy))
        assert "Only public addresses" not in str(error.value)
    assert server.paths() == ["/to", "/to"]


def _as_public(monkeypatch: pytest.MonkeyPatch, server: Server, **names: str) -> str:
    """The server under the name public.example. names: what others stand for, with _ for the dot."""
    known = {name.replace("_", "."): number for name, number in names.items()}

    def resolve(host: str, *_: object) -> tuple[str, ...]:
        if host == "public.example":
            return ("93.184.216.34",)
        if host not in known:
            raise OSError("Name or service not known")
        return (known[host],)

    monkeypatch.setattr(lines, "addresses_of", resolve)
    connect = lines.connect
    monkeypatch.setattr(lines, "connect", lambda at, _, *more: connect(at, ("127.0.0.1",), *more))
    return server.base.replace("127.0.0.1", "public.example")


def test_a_redirect_is_told_to_a_visitor_and_no_setting_that_would_not_allow_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = _as_public(monkeypatch, server, ten_test="10.0.0.7")
    server.odd["/to"] = lambda handler: handler.redirect(f"{server.base}/a.bin")
    told = []
    for policy in (VISITOR, replace(VISITOR, private=True)):
        with pytest.raises(AddressRefused) as error:
            HttpSource(f"{where}/to", client=Client(policy))
        assert not isinstance(error.value, NotPublic)
        told.append((error.value.says, error.value.hint))
    assert told[0][0] == told[1][0]
    assert told[0][0].startswith("public.example, a public server, redirects to 127.0.0.1")
    assert "give that address itself" not in told[0][1] and "give that address itself" in told[1][1]


def test_a_redirect_tells_no_visitor_whether_an_inside_name_exists(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = _as_public(monkeypatch, server, ten_test="10.0.0.7")
    for policy in (VISITOR, replace(VISITOR, private=True)):
        told = []
        for name in ("ten.test", "no.test"):
            server.odd["/to"] = lambda handler, name=name: handler.redirect(f"http://{name}/a.bin")
            with pytest.raises(AddressRefused) as error:
                HttpSource(f"{where}/to", client=Client(policy))
            told.append((type(error.value), error.value.says.replace(name, "NAME"), error.value.hint))
        assert told[0] == told[1]
        assert "public.example, a public server, redirects to NAME" in told[0][1]


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "meta.test"])
def test_no_redirect_leads_to_where_a_cloud_tells_its_keys(
    server: Server, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    asked: list[str] = []
    connect = lines.connect
    monkeypatch.setattr(lines, "connect", lambda at, *more: asked.append(at.host) or connect(at, *more))
    monkeypatch.setattr(lines, "addresses_of", lambda *_: ("169.254.169.254",))
    server.odd["/to"] = lambda handler: handler.redirect(f"http://{host}/latest/meta-data")
    for policy in (OWN, replace(VISITOR, private=True), replace(OWN, trusted=(server.base,))):
        with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 redirects to .*, where a cloud tells its machines"):
            HttpSource(f"{server.base}/to", client=Client(policy))
    assert set(asked) == {"127.0.0.1"}


def test_a_private_server_sends_on_to_other_private_addresses(server: Server) -> None:
    server.odd["/to"] = lambda handler: handler.redirect(f"{server.base}/a.bin")
    assert HttpSource(f"{server.base}/to", client=Client(replace(VISITOR, private=True))).size == 3


def _unknown(*_: object) -> tuple[str, ...]:
    raise OSError("Name or service not known")


def _silent(*_: object) -> tuple[str, ...]:
    raise TimeoutError("no answer within 10 s")


@pytest.mark.parametrize("port", ["", ":22", ":8080"])
def test_whether_an_inside_name_exists_is_told_by_no_sentence(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of a network could be found out by asking for them: each answer had its own words."""
    told = []
    for numbers in (("10.0.0.7",), ("127.0.0.1",), ("93.184.216.34", "10.0.0.7"), _unknown, _silent):
        found = numbers if callable(numbers) else lambda *_, numbers=numbers: numbers
        monkeypatch.setattr(lines, "addresses_of", found)
        with pytest.raises(AddressRefused) as error:
            HttpSource(f"http://ten.test{port}/x", client=Client(VISITOR))
        told.append((type(error.value), error.value.says, error.value.hint, error.value.__cause__))
    assert len(set(told)) == 1
    if port != ":22":
        assert told[0][1] == "No public address is known here for the name ten.test."
        assert "slip in the name" in told[0][2]


def test_who_may_ask_private_addresses_is_told_that_a_name_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "addresses_of", _unknown)
    for policy in (OWN, replace(VISITOR, private=True)):
        with pytest.raises(AddressError, match=r"The name ten\.test stands for no address here \(Name or service"):
            HttpSource("http://ten.test/x", client=Client(policy))


def test_a_visitor_asks_ports_of_web_servers(server: Server) -> None:
    del server
    for policy in (VISITOR, replace(VISITOR, private=True)):
        for address in ("http://8.8.8.8:22/x", "https://8.8.8.8:25/x", "http://127.0.0.1:22/x"):
            with pytest.raises(AddressRefused, match="is no web server's"):
                HttpSource(address, client=Client(policy))


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for models.test, with its key."""
    place = tmp_path_factory.mktemp("certificate") / "both.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=models.test", "-addext", "subjectAltName=DNS:models.test", "-keyout", "-", "-out", "-"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no openssl here")
    place.write_bytes(made.stdout)
    return place


def test_the_certificate_is_that_of_the_name_and_https_stays_https(
    server: Server, certified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certified))
    monkeypatch.setattr(lines, "addresses_of", lambda *_: ("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certified)
    names: list[str] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    with serving(context) as secure:
        secure.files["/a.bin"] = b"secret"
        secure.odd["/down"] = lambda handler: handler.redirect(f"{server.base}/a.bin")
        where = secure.base.replace("127.0.0.1", "models.test")
        source = HttpSource(f"{where}/a.bin", client=Client(OWN))
        assert source.read(0, 6) == b"secret"
        assert names == ["models.test"]
        with pytest.raises(AddressRefused, match="redirects from https to http"):
            HttpSource(f"{where}/down", client=source.client)
        with pytest.raises(AddressError, match="shows a certificate that is not trusted for it"):
            HttpSource(where.replace("models", "other") + "/a.bin", client=Client(OWN))
    assert server.log == []
