"""Exports from the disk: only with the folder's own name, only its files, always as an attachment."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette

from inspector.web import downloads, uploads

TOKEN = "ab" * downloads.TOKEN_BYTES


@dataclass(frozen=True)
class Answer:
    status_code: int
    headers: dict[str, str]
    content: bytes


class Client:
    """Calls the route as a server would, without a network."""

    def __init__(self, app: Starlette) -> None:
        self.app = app

    def get(self, address: str, headers: dict[str, str] | None = None) -> Answer:
        sent: list[dict[str, Any]] = []
        path, _, query = address.partition("?")

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "method": "GET",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
            "scheme": "http",
            "server": ("here.test", 80),
            "root_path": "",
        }
        asyncio.run(self.app(scope, receive, send))
        got = {k.decode().lower(): v.decode("latin-1") for k, v in sent[0]["headers"]}
        return Answer(sent[0]["status"], got, b"".join(m.get("body", b"") for m in sent[1:]))


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("INSPECTOR_STORE", str(tmp_path / "store"))
    uploads.the_store.cache_clear()
    folder = uploads.the_store().exports / TOKEN
    (folder / "repaired").mkdir(parents=True)
    (folder / "repaired" / "b.safetensors").write_bytes(b"second" * 1000)
    (folder / "a.json").write_bytes(b"first")
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    yield Client(Starlette(routes=[downloads.download_route()]))
    uploads.the_store.cache_clear()


def test_the_files_come_in_order_under_the_visitors_name(client):
    got = client.get(downloads.address_of(TOKEN, 0, "mein modell ü.pth"))
    assert got.status_code == 200 and got.content == b"first"
    assert got.headers["content-disposition"].startswith("attachment")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "mein%20modell%20%C3%BC.pth" in got.headers["content-disposition"]
    assert client.get(downloads.address_of(TOKEN, 1, "x")).content == b"second" * 1000


def test_a_part_of_it_comes_by_ranges(client):
    got = client.get(downloads.address_of(TOKEN, 1, "x"), headers={"Range": "bytes=6-11"})
    assert got.status_code == 206 and got.content == b"second"


@pytest.mark.parametrize("token", ["cd" * downloads.TOKEN_BYTES, "..", "%2e%2e", TOKEN.upper(), TOKEN + "0", "x"])
def test_other_folders_are_not_there(client, token):
    assert client.get(f"{downloads.DOWNLOAD_PATH}/{token}/0").status_code == 404


@pytest.mark.parametrize("place", ["2", "99999999999999999999", "-1", "x"])
def test_links_and_other_numbers_are_not_there(client, place):
    got = client.get(f"{downloads.DOWNLOAD_PATH}/{TOKEN}/{place}")
    assert got.status_code == 404 and b"secret" not in got.content


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\r\nSet-Cookie: x=1", '"; filename="evil.html', ""])
def test_a_name_cannot_leave_its_header(client, name):
    got = client.get(downloads.address_of(TOKEN, 0, name))
    assert got.status_code == 200 and "set-cookie" not in got.headers
    disposition = got.headers["content-disposition"]
    assert disposition.startswith("attachment") and "/" not in disposition and "\n" not in disposition
