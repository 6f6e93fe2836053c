"""The server as it runs: uvicorn's own answers, connections that say nothing, uploads that stop, and its end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.sync.client import connect

ROOT = Path(__file__).resolve().parents[2]
# What app.py mounts, without Streamlit behind it.
APP = """
import os, socket, sys
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import WebSocketRoute
from inspector.web.front import listener
from inspector.web.front.gate import Gate
from inspector.web.front.request_log import RequestLog, lines_for
from inspector.web.front.rules import own_house, own_rules
from inspector.web.front.start import started
from inspector.web.front.turnstile import Turnstile
from inspector.web.uploads import issue_token, routes
listener.HEAD_SECONDS = float(os.environ.get("HEAD_SECONDS", 30))
async def echo(socket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)
app = Starlette(routes=[*routes(), WebSocketRoute("/_stcore/stream", echo)], lifespan=started, middleware=[
    Middleware(RequestLog, pages=(), lines=lines_for(os.environ.get("INSPECTOR_LOG", ""))),
    Middleware(Gate, rules=own_rules()),
    Middleware(Turnstile, house=own_house()),
])
listening = socket.create_server(("127.0.0.1", 0))
print("port", listening.getsockname()[1], issue_token("me"), flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
"""


@dataclass
class Running:
    """A server in its own process."""

    process: subprocess.Popen[str]
    port: int
    token: str
    store: Path

    def get(self, path: str) -> tuple[int, dict[str, object]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def begin_upload(self, nbytes: int) -> http.client.HTTPConnection:
        """Its head, and nothing of it yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest("PUT", "/inspector/upload")
        connection.putheader("Content-Length", str(nbytes))
        connection.putheader("X-Inspector-Token", self.token)
        connection.putheader("X-File-Name", "a.pth")
        connection.endheaders()
        return connection

    def send(self, data: bytes) -> bytes:
        """What comes back on a connection of its own, until it is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            found = b""
            while piece := connection.recv(65536):
                found += piece
            return found

    def await_uploads(self, count: int) -> None:
        for _ in range(200):
            if len(list((self.store / "incoming").iterdir())) == count:
                return
            time.sleep(0.05)
        raise AssertionError(f"there are not {count} uploads under way")


@contextmanager
def running(folder: Path, **variables: str) -> Iterator[Running]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INSPECTOR_")}
    # Without workers, which would import torch.
    environment |= {
        "INSPECTOR_WORKERS": "0",
        "INSPECTOR_STORE": str(folder / "store"),
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    process = subprocess.Popen(
        [sys.executable, "-c", APP],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        name, port, token = [*process.stdout.readline().split(), "", "", ""][:3]
        assert name == "port", process.communicate(timeout=20)[1]
        yield Running(process=process, port=int(port), token=token, store=folder / "store")
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server"), HEAD_SECONDS="1", INSPECTOR_UPLOAD_IDLE_SECONDS="1") as one:
        yield one


@pytest.mark.parametrize(
    "request_", [b"NONSENSE\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n"]
)
def test_what_is_no_request_is_answered_with_the_headers(server: Running, request_: bytes) -> None:
    head = server.send(request_).partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
    assert head[0].startswith("http/1.1 400")
    for name in ("content-security-policy: ", "x-content-type-options: nosniff", "referrer-policy: same-origin"):
        assert sum(line.startswith(name) for line in head) == 1


def test_a_refused_handshake_carries_the_headers(server: Running) -> None:
    head = server.send(
        b"GET /_stcore/stream HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 421") and b"frame-ancestors 'none'" in head


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
def test_a_connection_without_a_request_is_closed(server: Running, begun: bytes) -> None:
    assert server.send(begun) == b""


def test_a_connection_with_a_request_is_not(server: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    for _ in range(3):
        connection.request("GET", "/inspector/live")
        assert connection.getresponse().read() == b'{"status":"live"}'
        time.sleep(0.6)


def test_a_pages_socket_stays_open(server: Running) -> None:
    """It was closed after the time for a request: its first head is answered by another protocol."""
    address = f"127.0.0.1:{server.port}"
    with connect(f"ws://{address}/_stcore/stream", origin=f"http://{address}", proxy=None) as page:  # type: ignore[arg-type]
        time.sleep(2.5)
        page.send("still there?")
        assert page.recv(10) == "still there?"


def test_an_upload_that_stands_still_is_dropped_and_leaves_nothing(server: Running) -> None:
    upload = server.begin_upload(10)
    upload.send(b"half")
    server.await_uploads(1)
    answer = upload.getresponse()
    assert answer.status == 408 and "Nothing came for 1 second." in json.loads(answer.read())["says"]
    assert list((server.store / "incoming").iterdir()) == list((server.store / "files").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process at once there")
def test_sigterm_lets_an_upload_end_and_says_meanwhile_that_it_is_not_ready(tmp_path: Path) -> None:
    with running(tmp_path, INSPECTOR_DRAIN_SECONDS="60", INSPECTOR_LOG="json") as server:
        assert server.get("/inspector/ready") == (200, {"status": "ready"})
        upload = server.begin_upload(8)
        upload.send(b"half")
        server.await_uploads(1)
        server.process.send_signal(signal.SIGTERM)
        for _ in range(200):
            status, answer = server.get("/inspector/ready")
            if status == 503:
                break
            time.sleep(0.05)
        assert (status, answer) == (503, {"status": "not ready", "reasons": ["The server is about to end."]})
        assert server.get("/inspector/live")[0] == 200
        refused = server.begin_upload(8).getresponse()
        assert refused.status == 503 and "about to end" in json.loads(refused.read())["says"]
        upload.send(b"full")
        answer = json.loads(upload.getresponse().read())
        assert answer["nbytes"] == 8
        out, _ = server.process.communicate(timeout=60)
        assert server.process.returncode in (0, -signal.SIGTERM)
        assert (server.store / "files" / answer["sha256"]).read_bytes() == b"halffull"
        lines = [json.loads(line) for line in out.splitlines()]
        assert [line["status"] for line in lines if line["route"] == "/inspector/upload"] == [503, 200]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process at once there")
def test_sigterm_cuts_an_upload_whose_time_has_passed_and_cleans_up(tmp_path: Path) -> None:
    with running(tmp_path, INSPECTOR_DRAIN_SECONDS="1") as server:
        upload = server.begin_upload(8)
        upload.send(b"half")
        server.await_uploads(1)
        server.process.send_signal(signal.SIGTERM)
        answer = upload.getresponse()
        assert answer.status == 503 and "about to end" in json.loads(answer.read())["says"]
        server.process.communicate(timeout=60)
        assert list((server.store / "incoming").iterdir()) == list((server.store / "files").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process at once there")
def test_a_second_sigterm_does_not_wait(tmp_path: Path) -> None:
    with running(tmp_path, INSPECTOR_DRAIN_SECONDS="600") as server:
        upload = server.begin_upload(8)
        upload.send(b"half")
        server.await_uploads(1)
        server.process.send_signal(signal.SIGTERM)
        for _ in range(200):
            if server.get("/inspector/ready")[0] == 503:
                break
            time.sleep(0.05)
        server.process.send_signal(signal.SIGTERM)
        server.process.communicate(timeout=60)
        assert list((server.store / "incoming").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("INSPECTOR_MAX_UPLOADS", "many", "INSPECTOR_MAX_UPLOADS is 'many'"),
        ("INSPECTOR_METRICS_FROM", "office", "'office', which is no address"),
        ("INSPECTOR_STORE_BYTES", "-1", "INSPECTOR_STORE_BYTES is '-1'"),
        ("INSPECTOR_TOKEN", "short", "INSPECTOR_TOKEN has 5 characters"),
    ],
)
def test_the_server_does_not_start_with_what_means_nothing(name: str, value: str, says: str, tmp_path: Path) -> None:
    environment = {**os.environ, "INSPECTOR_STORE": str(tmp_path / "store"), name: value}
    out = subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert out.returncode == 1 and says in out.stderr and "Traceback" not in out.stderr
