"""The real server: too many pages of one browser, and its end while an upload is under way."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_app import Server, running_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
# Where nothing is asked of them: at their start they import torch.
NO_WORKERS = {"INSPECTOR_WORKERS": "0"}


def _page(browser: Browser, server: Server) -> Page:
    context = browser.new_context()
    server.let_in(context)
    page = context.new_page()
    page.goto(server.url)
    page.locator(".mi-title h1").wait_for(timeout=60_000)
    return page


def _ask(server: Server, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_one_page_too_many_is_told_so_and_the_others_go_on(browser: Browser, tmp_path: Path) -> None:
    with running_app(tmp_path, INSPECTOR_MAX_CONNECTIONS_PER_VISITOR="2", **NO_WORKERS) as server:
        first = _page(browser, server)
        second = first.context.new_page()
        second.goto(server.url)
        second.locator(".mi-title h1").wait_for(timeout=60_000)
        third = first.context.new_page()
        answer = third.goto(server.url)
        assert answer is not None and answer.status == 429
        third.get_by_text("You have 2 pages of this server open").wait_for()
        # Another browser has its own cookie and its own places; and a closed page gives its place back.
        _page(browser, server).context.close()
        second.close()
        for _ in range(100):
            answer = third.goto(server.url)
            assert answer is not None
            if answer.status == 200:
                break
            time.sleep(0.1)
        third.locator(".mi-title h1").wait_for(timeout=60_000)
        first.context.close()


def test_all_pages_of_one_browser_share_their_files_and_their_quota(browser: Browser, tmp_path: Path) -> None:
    with running_app(tmp_path, **NO_WORKERS) as server:
        page = _page(browser, server)
        small = tmp_path / "small.pth"
        small.write_bytes(b"no checkpoint")
        page.get_by_test_id("inspector-file").set_input_files(small)
        page.wait_for_url("**/overview*", timeout=60_000)
        page.get_by_text("What is this file?").wait_for(timeout=60_000)

        def owners() -> int:
            (record,) = (server.store / "records").glob("*.json")
            return len(json.loads(record.read_text())["names"])

        again, other = page.context.new_page(), _page(browser, server)
        again.goto(page.url)
        again.get_by_text("What is this file?").wait_for(timeout=60_000)
        assert owners() == 1
        other.goto(page.url)
        other.get_by_text("What is this file?").wait_for(timeout=60_000)
        assert owners() == 2
        page.context.close()
        other.context.close()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process at once there")
def test_the_server_ends_after_the_upload_under_way_and_leaves_nothing(browser: Browser, tmp_path: Path) -> None:
    with running_app(tmp_path, INSPECTOR_DRAIN_SECONDS="60", INSPECTOR_LOG="json") as server:
        page = _page(browser, server)
        small = tmp_path / "small.pth"
        small.write_bytes(b"no checkpoint")
        with page.expect_request("**/inspector/upload") as sent:
            page.get_by_test_id("inspector-file").set_input_files(small)
        headers = sent.value.all_headers()
        page.wait_for_url("**/overview*", timeout=60_000)
        upload = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        upload.putrequest("PUT", "/inspector/upload")
        for name in ("x-inspector-token", "x-file-name", "cookie"):
            upload.putheader(name, headers[name])
        upload.putheader("Content-Length", "8")
        upload.endheaders(b"half")
        for _ in range(100):
            if list((server.store / "incoming").iterdir()):
                break
            time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        for _ in range(100):
            status, says = _ask(server, "/inspector/ready")
            if status == 503:
                break
            time.sleep(0.1)
        assert status == 503 and json.loads(says)["reasons"] == ["The server is about to end."]
        upload.send(b"full")
        assert json.loads(upload.getresponse().read())["nbytes"] == 8
        server.process.wait(60)
        page.context.close()
    assert list((server.store / "incoming").iterdir()) == []
    log = server.log.read_text()
    assert "Traceback" not in log
    secrets = (server.token, headers["x-inspector-token"], headers["cookie"].partition("=")[2], "small.pth")
    assert [secret for secret in secrets if secret in log] == []


def test_nothing_is_asked_of_anybody_elsewhere(tmp_path: Path) -> None:
    """Streamlit asks a server elsewhere for this machine's address at its start, and for pages by other names."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.2)
        proxy = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        with running_app(
            tmp_path,
            STREAMLIT_SERVER_ADDRESS="0.0.0.0",
            STREAMLIT_SERVER_CORS_ALLOWED_ORIGINS="https://lab.example",
            HTTP_PROXY=proxy,
            http_proxy=proxy,
            https_proxy=proxy,
        ) as server:
            port = int(server.url.rpartition(":")[2])
            entered = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            entered.request("GET", f"/?token={server.token}")
            cookie = (entered.getresponse().getheader("set-cookie") or "").partition(";")[0]
            head = (
                f"GET /_stcore/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nUpgrade: websocket\r\n"
                "Origin: https://lab.example\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            with socket.create_connection(("127.0.0.1", port), timeout=20) as page:
                page.sendall(head.encode())
                assert page.recv(64).startswith(b"HTTP/1.1 101")
            with suppress(TimeoutError):
                asked.append(elsewhere.accept()[0].recv(200))
    assert asked == []
    assert f"http://localhost:{port}/?token={server.token}" in server.log.read_text()
