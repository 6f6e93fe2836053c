"""A file behind an address, against a real server on this machine."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import torch

from inspector.checkpoint.data import read_array
from inspector.checkpoint.http_source import HttpSource
from inspector.errors import CorruptFile, LimitExceeded, ReadError
from inspector.readers import open_checkpoint


class Handler(BaseHTTPRequestHandler):
    files: dict[str, bytes] = {}  # noqa: RUF012
    log: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith("/to/"):
            self.send_response(302)
            self.send_header(
                "Location",
                {"/to/file": "file:///etc/hostname", "/to/ftp": "ftp://127.0.0.1/x", "/to/here": "/a.pt"}[path],
            )
            self.end_headers()
            return
        if path not in self.files:
            self.send_error(404)
            return
        body = self.files[path]
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        self.log.append(self.headers.get("Range", ""))
        if asked and path != "/norange.pt":
            first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
            body = body[first : last + 1]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        return None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.files, Handler.log = {}, []
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()
    thread.join()


def saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_opens_by_ranges_and_reads_one_tensor(server: str) -> None:
    state = {f"w{i}": torch.full((300, 1000), float(i)) for i in range(6)}
    Handler.files["/a.pt"] = saved(state)
    checkpoint = open_checkpoint(f"{server}/a.pt?download=1")
    assert checkpoint.origin.name == "a.pt"
    assert checkpoint.origin.nbytes == len(Handler.files["/a.pt"])
    opening = len(Handler.log)
    assert opening <= 2 + len(state)
    sent = sum(int(b) - int(a) + 1 for a, b in (r.removeprefix("bytes=").split("-") for r in Handler.log))
    assert sent < 500_000 < len(Handler.files["/a.pt"]) / 10
    assert read_array(checkpoint, checkpoint.tensors[4]).mean() == 4.0
    assert len(Handler.log) == opening + 1


def test_follows_web_redirects_only(server: str) -> None:
    Handler.files["/a.pt"] = saved([1])
    assert open_checkpoint(f"{server}/to/here").root.size == 1
    with pytest.raises(ReadError, match=r"Redirection to url 'file:///etc/hostname' is not allowed"):
        HttpSource(f"{server}/to/file")
    with pytest.raises(ReadError, match=r"redirects to ftp://127\.0\.0\.1/x, which is no web address"):
        HttpSource(f"{server}/to/ftp")


def test_what_is_refused(server: str) -> None:
    Handler.files["/norange.pt"] = bytes(400_000)
    Handler.files["/a.pt"] = bytes(1000)
    with pytest.raises(ReadError, match="no range requests"):
        HttpSource(f"{server}/norange.pt")
    with pytest.raises(ReadError, match="the server answers 404"):
        HttpSource(f"{server}/none.pt")
    with pytest.raises(LimitExceeded, match="1,000 bytes; the limit is 999"):
        HttpSource(f"{server}/a.pt", most_nbytes=999)
    for address in ("file:///etc/hostname", "ftp://x/y", "http:///x"):
        with pytest.raises(ReadError, match="no web address"):
            HttpSource(address)
    with pytest.raises(CorruptFile, match="ends at byte 1,000"):
        HttpSource(f"{server}/a.pt").read(990, 11)


def test_near_ranges_are_fetched_together(server: str) -> None:
    body = bytes(i % 251 for i in range(2_000_000))
    Handler.files["/a.bin"] = body
    source = HttpSource(f"{server}/a.bin")
    before = len(Handler.log)
    ranges = [(900_000, 10), (1_500_000, 5), (905_000, 20), (900_005, 3)]
    assert source.read_many(ranges) == [body[a : a + n] for a, n in ranges]
    assert len(Handler.log) == before + 2
