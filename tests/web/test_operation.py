"""What whoever runs a server asks it: alive, ready, counted; and that no line of its log gives anything away."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from inspector.errors import UsageError
from inspector.jobs.client import Client as JobsClient
from inspector.jobs.settings import Settings
from inspector.web.front import probes, workers
from inspector.web.front.counters import Counters
from inspector.web.front.draining import Draining
from inspector.web.front.request_log import RequestLog, lines_for, route_of
from inspector.web.store import ContentStore
from tests.web.asgi_client import Client

TOKEN = "counters-for-me-only"
SECRETS = ("0123456789abcdef" * 4, "my secret model.pth", "token-in-the-query", "cookie-of-mine", "bearer-of-mine")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContentStore:
    made = ContentStore(tmp_path)
    monkeypatch.setattr(probes, "the_store", lambda: made)
    monkeypatch.setattr(probes, "draining", Draining())
    monkeypatch.setattr(probes, "_kept", probes._Kept())
    # The work of these is none; tests/jobs has the workers.
    client = JobsClient(Settings(workers=0, memory_nbytes=0, threads=1, results=tmp_path / "results"))
    monkeypatch.setattr(workers, "the_client", lambda: client)
    return made


def server(**environment: str) -> Client:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("INSPECTOR_METRICS_TOKEN", "INSPECTOR_METRICS_FROM"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        return Client(Starlette(routes=probes.probe_routes()), host="localhost:8501")


def test_alive_and_ready(store: ContentStore) -> None:
    client = server()
    assert json.loads(client.get("/inspector/live").body) == {"status": "live"}
    answer = client.get("/inspector/ready")
    assert (answer.status, json.loads(answer.body)) == (200, {"status": "ready"})
    assert answer.headers["cache-control"] == "no-store"
    assert [path.name for path in store.root.iterdir() if path.is_file()] == []


def test_not_ready_while_it_ends_but_alive(store: ContentStore) -> None:
    client = server()
    assert client.get("/inspector/ready").status == 200
    probes.draining.has_begun = True
    answer = client.get("/inspector/ready")
    assert answer.status == 503 and json.loads(answer.body)["reasons"] == ["The server is about to end."]
    assert client.get("/inspector/live").status == 200


def test_not_ready_where_the_store_cannot_be_written(store: ContentStore, tmp_path: Path) -> None:
    store.root = tmp_path / "gone"
    answer = server().get("/inspector/ready")
    assert answer.status == 503
    assert json.loads(answer.body)["reasons"] == ["The store cannot be written: No such file or directory."]


def test_not_ready_where_the_disk_is_full(store: ContentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "LEAST_FREE_NBYTES", 10**30)
    assert "are free on the store's disk" in server().get("/inspector/ready").text


def test_other_parts_of_the_server_add_a_check_and_often_asking_costs_nothing(
    store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def worker() -> str:
        asked.append(1)
        return "No worker answers."

    monkeypatch.setattr(probes, "ready_checks", [*probes.ready_checks, worker])
    client = server()
    for _ in range(5):
        assert json.loads(client.get("/inspector/ready").body)["reasons"] == ["No worker answers."]
    assert len(asked) == 1


def test_the_counters_are_nobodys_unless_the_operator_names_somebody(store: ContentStore) -> None:
    for environment in ({}, {"INSPECTOR_METRICS_TOKEN": TOKEN}, {"INSPECTOR_METRICS_FROM": "10.0.0.0/8"}):
        assert server(**environment).get("/inspector/metrics").status == 404
    with_token = server(INSPECTOR_METRICS_TOKEN=TOKEN)
    for shown in (f"Bearer {TOKEN}x", "Bearer", f"Basic {TOKEN}", TOKEN, "Bearer ümlaut"):
        assert with_token.get("/inspector/metrics", {"authorization": shown}).status == 404
    answer = with_token.get("/inspector/metrics", {"authorization": f"Bearer {TOKEN}"})
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE inspector_requests_total counter" in answer.text and "inspector_store_bytes 0" in answer.text


def test_an_address_counts_only_where_no_proxy_stands_between(store: ContentStore) -> None:
    # The client's address is 127.0.0.1 here.
    near = server(INSPECTOR_METRICS_FROM="10.0.0.5, 127.0.0.1")
    assert near.get("/inspector/metrics").status == 200
    for headers in ({"x-forwarded-for": "127.0.0.1"}, {"forwarded": "for=1.2.3.4"}, {"via": "1.1 proxy"}):
        assert near.get("/inspector/metrics", headers).status == 404
    # A proxy of this machine that says nothing still asks for the name that the visitor asked for.
    assert near.get("/inspector/metrics", {"host": "models.example.com"}).status == 404


def test_whom_the_operator_names_has_to_be_somebody() -> None:
    with pytest.raises(UsageError, match="has 5 characters"):
        probes.readers_from({"INSPECTOR_METRICS_TOKEN": "short"})
    with pytest.raises(UsageError, match="'office', which is no address"):
        probes.readers_from({"INSPECTOR_METRICS_FROM": "10.0.0.1,office"})


def test_the_text_form_is_prometheus() -> None:
    held = Counters()
    held.declare("asked_total", "Questions.")
    held.add("asked_total", kind='a "quoted" \\ word\n')
    held.add("asked_total", 2, kind="plain")
    held.gauge("open", "Now.", lambda: 1.5)
    assert held.text().splitlines() == [
        "# HELP asked_total Questions.",
        "# TYPE asked_total counter",
        'asked_total{kind="a \\"quoted\\" \\\\ word\\n"} 1',
        'asked_total{kind="plain"} 2',
        "# HELP open Now.",
        "# TYPE open gauge",
        "open 1.500000",
    ]


async def _inside(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "hello"})
        return
    if scope["path"] == "/inspector/upload":
        while (await receive()).get("more_body"):
            pass
    if scope["path"] == "/overview" and scope["query_string"] == b"break":
        raise RuntimeError(SECRETS[1])
    await PlainTextResponse("inside", 200 if scope["path"] != "/nothing" else 404)(scope, receive, send)


def lines_of(*requests: tuple[str, str, bytes, dict[str, str]]) -> tuple[list[dict[str, object]], str]:
    out = io.StringIO()
    client = Client(RequestLog(_inside, pages={"overview"}, lines=out))
    for method, address, body, headers in requests:
        client.connect(address, headers) if method == "SOCKET" else client.ask(method, address, body, headers)
    return [json.loads(line) for line in out.getvalue().splitlines()], out.getvalue()


def test_one_line_for_each_request() -> None:
    lines, _ = lines_of(
        ("GET", "/", b"", {}),
        ("PUT", "/inspector/upload", b"x" * 100, {}),
        ("SOCKET", "/_stcore/stream", b"", {}),
        ("GET", "/nothing", b"", {}),
        ("GET", "/overview?break", b"", {}),
    )
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/", 200),
        ("PUT", "/inspector/upload", 200),
        ("GET", "/_stcore/stream", 101),
        ("GET", "other", 404),
        ("GET", "/overview", 500),
    ]
    assert [line["received_bytes"] for line in lines] == [0, 100, 0, 0, 0]
    assert [line["sent_bytes"] for line in lines][:3] == [6, 6, 5]
    assert all(set(line) == set(lines[0]) and float(str(line["milliseconds"])) >= 0 for line in lines)
    assert len({line["request"] for line in lines}) == 5


def test_no_line_holds_a_secret() -> None:
    digest, name, token, cookie, bearer = SECRETS
    headers = {"cookie": f"inspector={cookie}", "authorization": f"Bearer {bearer}", "x-file-name": name}
    addresses = (
        f"/overview?file={digest}&name={name.replace(' ', '%20')}&token={token}",
        f"/inspector/exports/{digest}/0?name={token}",
        f"/media/{digest}.png",
        f"/{name.replace(' ', '%20')}",
        f"/overview/{token}/_stcore/health",
        f"/static/{token}.js",
    )
    for stated in ("", "json", f"{name}"):
        lines, text = lines_of(*(("GET", address, b"", headers | {"x-request-id": stated}) for address in addresses))
        assert [line["route"] for line in lines] == [
            "/overview",
            "/inspector/exports",
            "/media",
            "other",
            "/_stcore/health",
            "/static",
        ]
        for secret in SECRETS:
            assert secret not in text and secret.replace(" ", "%20") not in text


def test_a_proxys_number_is_kept_and_given_back() -> None:
    client = Client(RequestLog(_inside, pages=()))
    assert client.get("/", {"x-request-id": "0123-abcd_EF"}).headers["x-request-id"] == "0123-abcd_EF"
    for stated in ("short", "x" * 65, 'with "quotes" in it', "new\u00e4"):
        assert client.get("/", {"x-request-id": stated}).headers["x-request-id"] != stated


def test_what_breaks_is_answered_with_the_headers_and_without_its_words() -> None:
    answer = Client(RequestLog(_inside, pages={"overview"})).get("/overview?break")
    assert answer.status == 500 and answer.headers["x-request-id"] in answer.text
    assert SECRETS[1] not in answer.text
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_lines_are_written_only_where_they_are_wanted() -> None:
    assert lines_for("") is None and lines_for("text") is None and lines_for(" JSON") is not None


def test_routes_are_few_words_of_ours() -> None:
    for path, route in (
        ("/", "/"),
        ("/overview/", "/overview"),
        ("/inspector/live", "/inspector/live"),
        ("/inspector/exports/abc/0", "/inspector/exports"),
        ("/inspector/static/abc/drawing/paint.js", "/inspector/static"),
        ("/inspector/secret", "other"),
        ("/_stcore/stream", "/_stcore/stream"),
        ("/_stcore/agent/mcp", "other"),
        ("/a/b/_stcore/host-config", "/_stcore/host-config"),
        ("//evil", "other"),
    ):
        assert route_of(path, {"overview"}) == route


def test_the_checks_are_asked_in_their_order_and_each_answers() -> None:
    assert probes.ready_checks[:2] == [probes.is_taking, probes.store_is_written]
    assert asyncio.run(probes.is_taking()) == ""


def test_a_store_of_the_operators_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.web.store import the_store

    for name, value in (
        ("INSPECTOR_STORE", str(tmp_path / "store")),
        ("INSPECTOR_FILE_BYTES", "10"),
        ("INSPECTOR_STORE_BYTES", "100"),
        ("INSPECTOR_STORE_BYTES_PER_VISITOR", "50"),
        ("INSPECTOR_STORE_HOURS", "2"),
    ):
        monkeypatch.setenv(name, value)
    the_store.cache_clear()
    made = the_store()
    assert (made.file_nbytes, made.quota_nbytes, made.owner_nbytes, made.ttl_seconds) == (10, 100, 50, 7200)
    made.put_bytes(b"abc", name="a", owner="me")
    assert made.nbytes() == 3
    (tmp_path / "store" / "incoming" / "half").write_bytes(b"x")
    made.clear_uploads()
    assert list((tmp_path / "store" / "incoming").iterdir()) == []
    the_store.cache_clear()


def test_the_route_of_a_page_is_mounted_once() -> None:
    paths = [route.path for route in probes.probe_routes() if isinstance(route, Route)]
    assert paths == ["/inspector/health", "/inspector/live", "/inspector/ready", "/inspector/metrics"]
