"""The gate before every route: by which names, from which sites, with which key, and what every answer tells."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket

from inspector.errors import UsageError
from inspector.web.front.gate import Gate, Rules
from inspector.web.front.headers import headers_for
from inspector.web.front.hosts import host_of, hosts_of
from inspector.web.front.keys import Key, key_from
from tests.web.asgi_client import Answer, Client

LOCAL = Rules(
    hosts=hosts_of("127.0.0.1", ()),
    key=None,
    pages=("open", "overview"),
    files=("favicon.png", "static/x.js", "static/js/index.js"),
)
KEY = Key(secret="a-secret-of-some-length")
LOCKED = replace(LOCAL, key=KEY, open=("/inspector/health",))
HOST = "localhost:8501"
SITE = f"http://{HOST}"


async def _anything(request: object) -> PlainTextResponse:
    return PlainTextResponse("inside")


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("inside")
    await socket.close()


def _client(rules: Rules = LOCAL, host: str = HOST) -> Client:
    """Everything that comes through answers "inside", as Streamlit's own folder shows its first page for every path."""
    routes = [
        WebSocketRoute("/_stcore/stream", _socket),
        Mount("/", routes=[Route("/{path:path}", _anything, methods=["GET", "POST", "PUT"])]),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Gate, rules=rules)])
    return Client(app, host=host)


def _enter(client: Client, secret: str, follow: str = "/") -> Answer:
    return client.ask("POST", "/inspector/enter", urlencode({"secret": secret, "follow": follow}).encode())


@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1:8501", "[::1]:8501", "LOCALHOST", "app.localhost:1"])
def test_this_machines_own_names_are_answered(host: str) -> None:
    assert _client().get("/", headers={"host": host}).text == "inside"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example:8501", "127.0.0.1.evil.example", "192.168.1.5:8501", "",
     "127.0.0.1@evil:80", "localhost:80:80", "[::1", "[::1]evil", "evil.example#localhost", "1270.0.1"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/inspector/upload", "/media/x.png", "/static/js/index.js"])
def test_a_name_pointed_here_from_elsewhere_reads_nothing(host: str, path: str) -> None:
    answer = _client().get(path, headers={"host": host})
    assert answer.status == 421
    assert "inside" not in answer.text


def test_two_hosts_are_none() -> None:
    answer = _client().ask("GET", "/", headers=[("host", "localhost"), ("host", "evil.example")])
    assert answer.status == 421


def test_a_published_server_answers_to_addresses_and_stated_names_only() -> None:
    hosts = hosts_of("0.0.0.0", ("models.example.com", "*.lab.example"))
    assert hosts.has("10.1.2.3:8501") and hosts.has("[2001:db8::1]:8501") and hosts.has("Models.Example.com")
    assert hosts.has("a.lab.example") and hosts.has("models.example.com.")
    assert not hosts.has("lab.example") and not hosts.has("evil.example") and not hosts.has("evillab.example")
    assert hosts_of("gpu-box", ()).has("gpu-box:80")
    assert host_of("[::1]:80") == "::1" and host_of("a:b") == ""


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:9999", "http://localhost", "x", "http://["]
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("PUT", "/inspector/upload"), ("POST", "/open")])
def test_another_site_may_not_ask(origin: str, method: str, path: str) -> None:
    assert _client().ask(method, path, headers={"origin": origin}).status == 403


def test_the_own_site_and_the_stated_ones_may_ask() -> None:
    assert _client().ask("PUT", "/inspector/upload", headers={"origin": SITE}).text == "inside"
    other = replace(LOCAL, hosts=hosts_of("127.0.0.1", (), ["https://lab.example/"]))
    assert _client(other).ask("PUT", "/inspector/upload", headers={"origin": "https://lab.example"}).text == "inside"


def test_two_lengths_for_one_request_are_refused() -> None:
    answer = _client().ask("PUT", "/inspector/upload", headers={"content-length": "10", "transfer-encoding": "chunked"})
    assert answer.status == 400


def test_sockets_are_behind_the_same_gate() -> None:
    assert _client().connect("/_stcore/stream", {"origin": SITE}) == "inside"
    for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        assert _client().connect("/_stcore/stream", headers) == ""
    assert _client(LOCKED).connect("/_stcore/stream") == ""


@pytest.mark.parametrize(
    "path", ["/_stcore/agent/openapi.json", "/_stcore/agent/mcp", "/_stcore/metrics", "/open/_stcore/agent/interact",
             "/_stcore//metrics", "/_stcore/metrics/"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_interfaces_for_programs_are_closed(path: str, method: str) -> None:
    answer = _client().ask(method, path)
    assert answer.status == 404 and "inside" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/open/deeper",
        "/overview.html",
        "/wp-login.php",
        "/pages/open.py",
        "/static/nothing.js",
        "/app/static/x",
        "/_stcore/metrics;x",
        "/_stcore/agentx",
        "/static/",
        "/inspector/nope",
        "/inspector/live/x",
        "/inspector",
    ],
)
def test_an_unknown_path_is_not_the_first_page(path: str) -> None:
    answer = _client().get(path)
    assert answer.status == 404
    assert 'href="/"' in answer.text and "inside" not in answer.text
    assert 'href="/lab/"' in _client(replace(LOCAL, base="/lab")).get("/lab" + path).text


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/open",
        "/overview/",
        "/favicon.png",
        "/static/x.js",
        "/_stcore/health",
        "/media/a",
        "/inspector/static/0123/drawing/element.js",
    ],
)
def test_what_exists_is_let_through(path: str) -> None:
    assert _client().get(path).text == "inside"
    assert _client(replace(LOCAL, base="/lab")).get("/lab" + path).text == "inside"


def test_every_answer_carries_the_headers() -> None:
    client = _client()
    answers = [
        client.get("/"),
        client.get("/nothing"),
        client.get("/", headers={"host": "evil"}),
        _client(LOCKED).get("/"),
    ]
    assert [answer.status for answer in answers] == [200, 404, 421, 401]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "unsafe-eval" not in policy
        assert re.search(r"script-src 'self'( 'sha256-[A-Za-z0-9+/=]{44}'){2} blob:", policy)
        assert "'unsafe-inline'" not in re.search(r"script-src[^;]*", policy)[0]  # type: ignore[index]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"


def test_only_scripts_in_the_page_itself_are_in_the_policy() -> None:
    # The digest of "a" as openssl prints it.
    held = dict(headers_for(b'<script>a</script><script src="x.js"></script>'))
    policy = held[b"content-security-policy"].decode()
    assert policy.count("sha256-") == 1 and "'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='" in policy


def test_without_the_token_nothing_is_shown() -> None:
    client = _client(LOCKED)
    for path in (
        "/",
        "/overview?file=abc",
        "/static/x.js",
        "/media/a",
        "/_stcore/health",
        "/inspector/exports/a/0",
        "/inspector/static/a/b.js",
    ):
        answer = client.get(path)
        assert answer.status == 401 and "inside" not in answer.text
    assert client.ask("PUT", "/inspector/upload").status == 401
    assert client.get("/inspector/health").text == "inside"


def test_the_token_stands_in_an_address_once() -> None:
    client = _client(LOCKED)
    answer = client.get(f"/overview?file=abc&token={KEY.secret}&name=a%20b")
    assert answer.status == 303 and answer.headers["location"] == "/overview?file=abc&name=a+b"
    assert KEY.secret not in _enter(client, KEY.secret, f"/explain?token={KEY.secret}").headers["location"]
    assert client.get(f"/nonsense?token={KEY.secret}").headers["location"] == "/nonsense"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and KEY.secret not in cookie
    assert client.get("/overview?file=abc").text == "inside"
    assert client.connect("/_stcore/stream") == "inside"
    # Another server on this machine, by its port.
    assert _client(LOCKED, "localhost:8502").get("/", headers={"cookie": cookie.partition(";")[0]}).status == 401


def test_the_form_leads_back_to_this_server_only() -> None:
    client = _client(LOCKED)
    assert 'name="follow" value="/overview?file=a&quot;b"' in client.get('/overview?file=a"b').text.replace(
        "%22", "&quot;"
    )
    for follow, to in (
        ("/overview?file=a", "/overview?file=a"),
        ("//evil", "/"),
        ("https://evil", "/"),
        ("/\\evil", "/"),
    ):
        answer = _enter(client, KEY.secret, follow)
        assert (answer.status, answer.headers["location"]) == (303, to)
    assert _client(LOCKED).ask("POST", "/inspector/enter", b"x" * 100_000).status == 403


def test_the_page_after_a_wrong_secret_still_knows_the_link_when_it_is_loaded_again() -> None:
    client = _client(LOCKED)
    page = _enter(client, "wrong", "/repair?file=abc&state=ema").text
    way = html.unescape(re.search(r'action="([^"]+)"', page)[1])  # type: ignore[index]
    assert "it opens the link that you followed" in page
    assert client.get(way).headers["location"] == "/repair?file=abc&state=ema"
    for follow in ("//evil", "https://evil", "/\\evil", ""):
        assert client.get(f"/inspector/enter?follow={follow}").headers["location"] == "/"
    assert "link that you followed" not in client.get("/overview").text


def test_wrong_secrets_are_told_and_counted() -> None:
    client = _client(LOCKED)
    for _ in range(10):
        answer = _enter(client, "wrong")
        assert answer.status == 403 and "That is not the token." in answer.text
    answer = _enter(client, KEY.secret)
    assert answer.status == 429 and "set-cookie" not in answer.headers


def test_a_cookie_of_somebodys_own_making_opens_nothing() -> None:
    for value in ("", "1", KEY.secret, Key(secret="another-secret-here").cookie):
        answer = _client(LOCKED).get("/", headers={"cookie": f"inspector-8501={value}"})
        assert answer.status == 401


def test_a_proxy_that_knows_its_visitors_is_believed_only_where_it_is_named() -> None:
    asked = {"x-forwarded-user": "anna"}
    assert _client(LOCKED).get("/", headers=asked).status == 401
    named = replace(LOCKED, key=replace(KEY, user_header="x-forwarded-user"))
    assert _client(named).get("/", headers=asked).text == "inside"
    assert _client(named).get("/", headers={"x-forwarded-user": ""}).status == 401


def test_the_operator_states_the_key_or_one_is_drawn() -> None:
    assert key_from({}, needed=False) is None
    one, other = key_from({}, needed=True), key_from({}, needed=True)
    assert one is not None and other is not None and one.secret != other.secret and len(one.secret) >= 32
    stated = key_from({"INSPECTOR_PASSWORD": "correct horse battery"}, needed=False)
    assert stated == Key(secret="correct horse battery", is_password=True)
    with pytest.raises(UsageError, match="has 5 characters"):
        key_from({"INSPECTOR_TOKEN": "short"}, needed=True)


def test_every_page_of_the_navigation_is_a_page_of_the_gate() -> None:
    root = Path(__file__).resolve().parents[2]
    named = set(re.findall(r'url_path="(\w+)"', (root / "ui.py").read_text(encoding="utf-8")))
    assert named == {path.stem for path in (root / "pages").glob("*.py")}
