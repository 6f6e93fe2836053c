"""Whole files fetched: the bytes and their digest, or nothing that stays."""

from __future__ import annotations

import hashlib
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.errors import AddressError, FileChanged, LimitExceeded
from inspector.progress import Stopped, silent
from inspector.remote.download import Downloaded, Part, download
from inspector.remote.policy import OWN
from tests.serving import Handler, Server, serving

BODY = bytes(i % 251 for i in range(1_000_003))
QUICK = replace(OWN, read_seconds=0.5, seconds=0.4, slowest=10**8)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as told:
        told.files["/a.bin"] = BODY
        yield told


def _part(server: Server, path: str = "/a.bin", **more: str) -> Part:
    return Part(address=server.base + path, name=path[1:], **more)


def test_one_file_is_its_bytes(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    came = download(
        [_part(server, sha256=hashlib.sha256(BODY).hexdigest())],
        tmp_path / "a",
        OWN,
        most_nbytes=10**7,
        progress=lambda done, total, _: seen.append((done, total)),
    )
    assert (tmp_path / "a").read_bytes() == BODY
    assert came == Downloaded(sha256=hashlib.sha256(BODY).hexdigest(), nbytes=len(BODY))
    assert seen[0] == (0, len(BODY)) and seen[-1] == (len(BODY), len(BODY))


def test_several_are_a_tar_that_others_read(server: Server, tmp_path: Path) -> None:
    server.files["/b/c.json"] = b"{}"
    parts = [_part(server), _part(server, "/b/c.json")]
    came = download(parts, tmp_path / "a", OWN, most_nbytes=10**7, progress=silent)
    with tarfile.open(tmp_path / "a") as tar:
        assert {m.name: tar.extractfile(m).read() for m in tar} == {"a.bin": BODY, "b/c.json": b"{}"}  # type: ignore[union-attr]
    assert came.sha256 == hashlib.sha256((tmp_path / "a").read_bytes()).hexdigest()


def test_a_server_without_ranges_is_read_in_one_go(server: Server, tmp_path: Path) -> None:
    server.odd["/a.bin"] = lambda handler: handler.answer(200, BODY)
    assert download([_part(server)], tmp_path / "a", OWN, most_nbytes=10**7, progress=silent).nbytes == len(BODY)
    assert (tmp_path / "a").read_bytes() == BODY


def _cut(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    handler.wfile.write(BODY[:300_000])
    handler.close_connection = True


def _drip(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    for at in range(14):
        handler.wfile.write(BODY[at : at + 1])
        time.sleep(0.1)


def _endless(length: int | None, sent: list[int]) -> Callable[[Handler], None]:
    """Zeros without ranges and without an end. sent: how many were taken."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        if length is not None:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.close_connection = True
        with suppress(OSError):
            while True:
                handler.wfile.write(bytes(65536))
                sent.append(65536)

    return answer


@pytest.mark.parametrize(("length", "says"), [(10**15, "is said to be 1.* long"), (None, "is longer than 3.00 MB")])
def test_a_file_without_an_end_is_refused_by_its_length_else_at_the_limit(
    server: Server, tmp_path: Path, length: int | None, says: str
) -> None:
    sent: list[int] = []
    written: list[int] = []
    server.odd["/a.bin"] = _endless(length, sent)
    with pytest.raises(LimitExceeded, match=says):
        download(
            [_part(server)],
            tmp_path / "a",
            OWN,
            most_nbytes=3_000_000,
            progress=lambda done, *_: written.append(done),
        )
    assert not (tmp_path / "a").exists()
    assert max(written) == (0 if length else 2 << 20)


def test_what_goes_wrong_leaves_nothing(server: Server, tmp_path: Path) -> None:
    place = tmp_path / "a"

    def fails(kind: type[Exception], says: str | None, part: Part, **more: object) -> None:
        with pytest.raises(kind, match=says):
            download([part], place, **{"policy": QUICK, "most_nbytes": 10**7, "progress": silent} | more)  # type: ignore[arg-type]
        assert not place.exists()

    fails(LimitExceeded, "is said to be 1.00 MB long; 900 kB are the most", _part(server), most_nbytes=900_000)
    fails(FileChanged, "its sha256 differs", _part(server, sha256="0" * 64))

    def stop(done: int, *_: object) -> None:
        if done:
            raise Stopped

    fails(Stopped, None, _part(server), progress=stop)
    server.odd["/a.bin"] = _cut
    fails(AddressError, r"sent 300,000 of 1,000,003 bytes|broke off", _part(server))
    server.odd["/a.bin"] = _drip
    fails(AddressError, "too slow", _part(server), policy=replace(QUICK, tries=1))
