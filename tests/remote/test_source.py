"""A file behind an address, against a real server on this machine: right answers, counted, or named errors."""

from __future__ import annotations

import io
import json
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from inspector.checkpoint.data import read_array
from inspector.errors import AddressError, AddressRefused, CorruptFile, FileChanged, LimitExceeded, NeedsWholeFile
from inspector.readers import open_checkpoint
from inspector.remote.client import Client
from inspector.remote.policy import OWN, Policy
from inspector.remote.source import HttpSource
from tests.serving import Handler, Server, serving

QUICK = replace(OWN, read_seconds=0.3, seconds=0.8, slowest=10**7, connect_seconds=1.0)
BODY = bytes(i % 251 for i in range(2_000_000))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as told:
        yield told


def opened(server: Server, path: str = "/a.bin", policy: Policy = QUICK) -> HttpSource:
    return HttpSource(server.base + path, client=Client(policy))


def saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_reads_are_the_bytes_and_small_ones_are_not_asked_twice(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = opened(server)
    assert source.size == len(BODY)
    assert source.read(10, 1000) == BODY[10:1010]
    assert len(server.log) == 1
    assert source.read(len(BODY) - 5, 5) == BODY[-5:]
    assert source.read(len(BODY) - 70_000, 70_000) == BODY[-70_000:]
    assert len(server.log) == 2
    assert source.read(0, len(BODY)) == BODY
    assert len(server.log) == 3 and server.connections == 1


def test_reading_on_asks_for_more_each_time(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = opened(server)
    assert b"".join(source.read(at, 1000) for at in range(0, 1_900_000, 1000)) == BODY[:1_900_000]
    assert [asked.span for asked in server.log] == [
        "bytes=0-131071", "bytes=131072-393215", "bytes=393216-917503", "bytes=917504-1966079",
    ]  # fmt: skip


def test_opens_by_ranges_and_reads_one_tensor(server: Server) -> None:
    state = {f"w{i}": torch.full((300, 1000), float(i)) for i in range(6)}
    server.files["/a.pt"] = saved(state)
    checkpoint = open_checkpoint(f"{server.base}/a.pt?download=1")
    assert checkpoint.origin.name == "a.pt"
    assert checkpoint.origin.nbytes == len(server.files["/a.pt"])
    before = len(server.log)
    assert read_array(checkpoint, checkpoint.tensors[4]).mean() == 4.0
    assert len(server.log) == before + 1


def test_a_safetensors_header_within_the_first_request_takes_no_other(server: Server) -> None:
    for over in range(-9, 10):
        held = json.dumps({"w": {"dtype": "F32", "shape": [75_000], "data_offsets": [0, 300_000]}}).encode()
        header = held.ljust(128 * 1024 - 8 + over)
        server.files[f"/{over}.safetensors"] = len(header).to_bytes(8, "little") + header + bytes(300_000)
        server.log.clear()
        checkpoint = open_checkpoint(f"{server.base}/{over}.safetensors")
        assert [(one.name, one.shape) for one in checkpoint.tensors] == [("w", (75_000,))]
        assert len(server.log) == (1 if over <= 0 else 2), over


@pytest.mark.parametrize(("path", "floats", "requests"), [("/a.safetensors", 100_000, 1), ("/a.safetensors", 9_000, 1),
                                                          ("/a.bin", 100_000, 2)])  # fmt: skip
def test_an_archive_in_the_last_tensor_is_looked_for_where_it_is_at_hand_or_would_be_loaded(
    server: Server, path: str, floats: int, requests: int
) -> None:
    inner = saved({"w": torch.ones(4)})
    data = bytes(4 * floats - len(inner)) + inner
    header = json.dumps({"w": {"dtype": "F32", "shape": [floats], "data_offsets": [0, len(data)]}}).encode()
    server.files[path] = len(header).to_bytes(8, "little") + header + data
    checkpoint = open_checkpoint(server.base + path)
    told = "two-formats" in {finding.id for finding in checkpoint.findings}
    unlooked = any("Whether an archive ends it was not looked at" in says for says in checkpoint.skipped)
    assert len(server.log) == requests
    assert (told, unlooked) == ((False, True) if (path, floats) == ("/a.safetensors", 100_000) else (True, False))


def test_near_ranges_are_fetched_together_and_far_ones_at_once(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = opened(server)
    ranges = [(900_000, 10), (1_500_000, 5), (905_000, 20), (900_005, 3), (5, 5), (7, 0)]
    assert source.read_many(ranges) == [BODY[a : a + n] for a, n in ranges]
    assert [asked.span for asked in server.log[1:]] in (
        ["bytes=900000-905019", "bytes=1500000-1500004"],
        ["bytes=1500000-1500004", "bytes=900000-905019"],
    )


def test_a_large_read_goes_in_pieces(server: Server) -> None:
    server.files["/a.bin"] = BODY * 9
    source = opened(server)
    assert source.read(100, 17_000_000) == (BODY * 9)[100:17_000_100]
    assert len(server.log) == 1 + 3


def test_a_source_travels_and_knows_its_file_again(server: Server) -> None:
    server.files["/a.bin"] = BODY
    again = pickle.loads(pickle.dumps(opened(server)))
    assert len(server.log) == 1
    assert again.read(500_000, 4) == BODY[500_000:500_004]
    server.files["/a.bin"] = BODY[::-1]
    with pytest.raises(FileChanged, match=r"a\.bin changed at its address while it was read"):
        again.read(1_000_000, 4)


@pytest.mark.parametrize("etags", [True, False])
def test_a_file_that_changes_is_said(server: Server, etags: bool) -> None:
    server.etags = etags
    server.files["/a.bin"] = BODY
    source = opened(server)
    server.files["/a.bin"] = BODY[:-1]
    with pytest.raises(FileChanged, match="changed at its address"):
        source.read(1_000_000, 10)


def test_follows_web_redirects_only_and_asks_there_from_then_on(server: Server) -> None:
    server.files["/a.bin"] = BODY
    server.odd["/to/here"] = lambda handler: handler.redirect("/a.bin?signed=1")
    source = opened(server, "/to/here")
    source.read(1_000_000, 4)
    assert server.paths() == ["/to/here", "/a.bin", "/a.bin"]
    server.odd["/a.bin"] = lambda handler: len(server.log) != 4 or handler.answer(403, b"")
    assert source.read(1_500_000, 4) == BODY[1_500_000:1_500_004]
    assert server.paths()[3:] == ["/a.bin", "/to/here", "/a.bin"]
    assert server.connections == 1
    for where, says in (
        ("file:///etc/hostname", "redirects to file:///etc/hostname, which is no web address"),
        ("ftp://127.0.0.1/x?secret", r"redirects to ftp://127\.0\.0\.1/x, which"),
        ("http://[", r"redirects to http://\[, which"),
        ("/to/odd", "redirects more than 5 times"),
    ):
        server.odd["/to/odd"] = lambda handler, where=where: handler.redirect(where)  # type: ignore[misc]
        with pytest.raises(AddressError, match=says):
            opened(server, "/to/odd")


def _promise(handler: Handler, nbytes: int, sent: bytes, span: str = "") -> None:
    handler.send_response(206)
    handler.send_header("Content-Range", span or f"bytes 0-{nbytes - 1}/2000000")
    handler.send_header("Content-Length", str(nbytes))
    handler.end_headers()
    handler.wfile.write(sent)


def _break_off(handler: Handler) -> None:
    _promise(handler, 131_072, BODY[:1000])
    handler.close_connection = True


def _stall(handler: Handler) -> None:
    _promise(handler, 131_072, BODY[:1000])
    time.sleep(0.6)


def _drip(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(30):
        handler.wfile.write(b"x")
        time.sleep(0.1)


def _flood(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X%d: %s\r\n" % (i, b"y" * 2000) for i in range(90)))


BAD = {
    "ignores ranges": (lambda h: h.answer(200, BODY), NeedsWholeFile, "does not send parts of a file"),
    "another range": (lambda h: _promise(h, 4, b"abcd", "bytes 5-8/2000000"), AddressError, "sent bytes 5 to 8 of"),
    "no range": (lambda h: _promise(h, 4, b"abcd", "bytes"), AddressError, "sent 'bytes' for bytes 0 to"),
    "no length": (lambda h: _promise(h, 4, b"abcd", "bytes 0-3/*"), NeedsWholeFile, "does not say how long it is"),
    "range and body differ": (lambda h: _promise(h, 4, b"abcd", "bytes 0-4/9"), AddressError, r"\(4 came\)"),
    "breaks off": (_break_off, AddressError, "sent 1,000 of 131,072 bytes"),
    "stalls": (_stall, AddressError, "sent nothing for 0.3 s"),
    "drips headers": (_drip, AddressError, "too slow"),
    "floods headers": (_flood, AddressError, "sends more than was asked for"),
    "speaks something else": (lambda h: h.wfile.write(b"SSH-2.0\r\n\r\n"), AddressError, "not answer as a web server"),
    "hangs up": (lambda h: setattr(h, "close_connection", True), AddressError, "web server does|broke off"),
    "asks to wait": (lambda h: h.answer(429, b"", {"Retry-After": "3000"}), AddressError, "come back in 3,000 s"),
    "fails": (lambda h: h.answer(500, b""), AddressError, "the server answers 500"),
    "is not there": (lambda h: h.answer(404, b""), AddressError, "the server answers 404 Not Found"),
    "packs": (lambda h: h.answer(200, b"x", {"Content-Encoding": "gzip"}), AddressError, "sends it packed"),
}


@pytest.mark.parametrize("way", BAD)
def test_a_bad_server_is_one_sentence(server: Server, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(Client, "_sleep", lambda *_: None)
    does, kind, says = BAD[way]
    server.odd["/a.bin"] = does  # type: ignore[assignment]
    policy = replace(QUICK, tries=1) if way in ("stalls", "drips headers") else QUICK
    with pytest.raises(kind, match=says) as error:
        opened(server, policy=policy)
    assert error.value.says.count(". ") == 0
    assert server.sent <= len(BODY)


def test_what_passes_is_tried_again_after_the_servers_own_wait(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(Client, "_sleep", lambda _, seconds, __: waits.append(seconds))
    server.files["/a.bin"] = BODY

    def busy(handler: Handler) -> bool:
        if len(server.log) == 1:
            handler.answer(429, b"", {"Retry-After": "7"})
        elif len(server.log) == 2:
            _break_off(handler)
        return len(server.log) > 2

    server.odd["/a.bin"] = busy
    assert opened(server).size == len(BODY)
    assert waits == [7.0, 14.0]


def test_a_server_that_gives_less_at_a_time_is_read_on(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = opened(server)

    def little(handler: Handler) -> None:
        first, last = (int(number) for number in handler.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, first + 49_999)
        _promise(handler, last - first + 1, BODY[first : last + 1], f"bytes {first}-{last}/2000000")

    server.odd["/a.bin"] = little
    assert source.read_many([(500_000, 2500)]) == [BODY[500_000:502_500]]
    assert len(server.log) == 4  # its own, and three for what is read ahead


def test_a_connection_that_was_closed_meanwhile_is_made_again(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = opened(server)
    (line,) = source.client._idle[server.base]
    line._sock.shutdown(socket.SHUT_RDWR)
    assert source.read(700_000, 3) == BODY[700_000:700_003]
    assert server.connections == 2


def test_what_is_refused(server: Server) -> None:
    server.files["/a.bin"] = BODY
    server.files["/empty.bin"] = b""
    server.files["/small.bin"] = b"abc"
    server.odd["/small.bin"] = lambda handler: handler.answer(200, b"abc")
    assert opened(server, "/empty.bin").size == 0
    assert opened(server, "/small.bin").read(1, 2) == b"bc"
    with pytest.raises(LimitExceeded, match=r"2,000,000 bytes; the limit is 999"):
        opened(server, policy=replace(QUICK, file_nbytes=999))
    with pytest.raises(NeedsWholeFile, match=r"More than 0 MB of a\.bin"):
        opened(server, policy=replace(QUICK, look_nbytes=200_000)).read(500_000, 100_000)
    for address in ("file:///etc/hostname", "ftp://x/y", "http:///x", "http://a b/", "http://a\\@b/", "http://x:0/"):
        with pytest.raises(AddressRefused, match="no web address"):
            HttpSource(address)
    with pytest.raises(CorruptFile, match=r"ends at byte 2,000,000"):
        opened(server).read(1_999_990, 11)


def test_a_password_goes_to_its_own_server_and_into_no_sentence(server: Server) -> None:
    with serving() as other:
        server.odd["/a.bin"] = lambda handler: handler.redirect(f"{other.base}/b.bin?signature=hush")
        with pytest.raises(AddressError) as error:
            HttpSource(server.base.replace("//", "//me:hush@") + "/a.bin?key=hush", client=Client(QUICK))
        assert server.log[0].headers["Authorization"] == "Basic bWU6aHVzaA=="
        assert other.log[0].headers["Authorization"] is None
    assert "hush" not in str(error.value)
    with pytest.raises(AddressRefused) as refused:
        HttpSource("ftp://me:hush@x/y?hush")
    assert "hush" not in str(refused.value)
    with pytest.raises(AddressRefused, match="name and password"):
        HttpSource(server.base.replace("//", "//me:hush@") + "/a", client=Client(replace(QUICK, passwords=False)))


def test_everything_goes_through_a_proxy_that_is_set_and_through_no_other(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.files["/a.bin"] = BODY
    assert opened(server).size == len(BODY)
    server.odd["http://models.invalid/a.bin"] = lambda handler: handler.answer_range(BODY)
    source = HttpSource("http://models.invalid/a.bin", client=Client(replace(QUICK, proxy=server.base)))
    assert source.size == len(BODY)
    assert server.paths()[-1] == "http://models.invalid/a.bin"


def test_many_threads_read_one_source(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = opened(server, policy=OWN)
    wrong: list[int] = []

    def read(number: int) -> None:
        places = range(number * 1000, 1_900_000, 190_000)
        wrong.extend(at for at in places if source.read(at, 5000) != BODY[at : at + 5000])

    threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert server.connections <= 8
