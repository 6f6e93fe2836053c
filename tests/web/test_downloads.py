"""Exports from the disk: only with the folder's own name, only its files, always as an attachment."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware

from inspector.web import downloads, uploads
from tests.web.asgi_client import Client

TOKEN = "ab" * downloads.TOKEN_BYTES


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
    assert got.status == 200 and got.body == b"first"
    assert got.headers["content-disposition"].startswith("attachment")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "mein%20modell%20%C3%BC.pth" in got.headers["content-disposition"]
    assert client.get(downloads.address_of(TOKEN, 1, "x")).body == b"second" * 1000


def test_a_part_of_it_comes_by_ranges(client):
    got = client.get(downloads.address_of(TOKEN, 1, "x"), headers={"Range": "bytes=6-11"})
    assert got.status == 206 and got.body == b"second"


def test_a_browser_that_takes_gzip_gets_the_file_as_it_lies_there(client):
    """Streamlit packed 100 MB of numbers for ten seconds, to send as much."""
    app = downloads.AsStored(GZipMiddleware(client.app, minimum_size=100))
    got = Client(app).get(downloads.address_of(TOKEN, 1, "x"), headers={"Accept-Encoding": "gzip, br"})
    assert got.body == b"second" * 1000 and "content-encoding" not in got.headers
    assert got.headers["content-length"] == "6000"


def test_a_large_file_goes_in_few_pieces(client, tmp_path):
    """Each takes two turns among threads that work: 1,600 of them made a download of 100 MB wait half a minute."""
    (uploads.the_store().exports / TOKEN / "a.json").write_bytes(bytes(8 << 20))
    pieces: list[int] = []

    async def counted(scope, receive, send):
        async def count(message):
            pieces.append(len(message.get("body", b"")))
            await send(message)

        await client.app(scope, receive, count)

    assert len(Client(counted).get(downloads.address_of(TOKEN, 0, "x")).body) == 8 << 20
    assert len(pieces) < 12


@pytest.mark.parametrize("token", ["cd" * downloads.TOKEN_BYTES, "..", "%2e%2e", TOKEN.upper(), TOKEN + "0", "x"])
def test_other_folders_are_not_there(client, token):
    assert client.get(f"{downloads.DOWNLOAD_PATH}/{token}/0").status == 404


@pytest.mark.parametrize("place", ["2", "99999999999999999999", "-1", "x"])
def test_links_and_other_numbers_are_not_there(client, place):
    got = client.get(f"{downloads.DOWNLOAD_PATH}/{TOKEN}/{place}")
    assert got.status == 404 and b"secret" not in got.body


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\r\nSet-Cookie: x=1", '"; filename="evil.html', ""])
def test_a_name_cannot_leave_its_header(client, name):
    got = client.get(downloads.address_of(TOKEN, 0, name))
    assert got.status == 200 and "set-cookie" not in got.headers
    disposition = got.headers["content-disposition"]
    assert disposition.startswith("attachment") and "/" not in disposition and "\n" not in disposition
