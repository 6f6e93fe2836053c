"""What asking a server costs: time that has an end, bytes that come once, refusals with advice of their own."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from inspector.checkpoint.source import is_distant
from inspector.cli.main import run
from inspector.errors import AddressError, AddressRefused, NeedsWholeFile
from inspector.readers import open_checkpoint
from inspector.remote.client import Client
from inspector.remote.policy import OWN, OWN_LOOK
from inspector.remote.source import HttpSource
from tests.serving import Handler, Server, serving

BODY = bytes(i % 251 for i in range(600_000))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as told:
        yield told


def spans(server: Server, path: str) -> list[tuple[int, int]]:
    """(first, last) of what was asked for."""
    asked = [one.span.removeprefix("bytes=").split("-") for one in server.log if one.path == path]
    return sorted((int(first), int(last)) for first, last in asked)


def assert_nothing_came_twice(server: Server, path: str) -> None:
    nbytes = len(server.files[path])
    ends = [(first, min(last, nbytes - 1)) for first, last in spans(server, path)]
    assert all(following > last for (_, last), (following, _) in itertools.pairwise(ends)), ends


def _drip(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 131072\r\n")
    handler.wfile.write(b"Content-Range: bytes 0-131071/600000\r\n\r\n")
    for _ in range(40):
        handler.wfile.write(b"x")
        time.sleep(0.02)


def test_a_server_that_drips_ends_with_the_look_and_is_not_asked_again(server: Server) -> None:
    server.odd["/a.bin"] = _drip
    quick = replace(OWN_LOOK, look_seconds=0.3, seconds=9.0)
    with pytest.raises(NeedsWholeFile, match=r"Looking at a\.bin through its address took more than 0.3 s") as error:
        HttpSource(f"{server.base}/a.bin", client=Client(quick))
    assert "too slow or sends too little" in error.value.hint
    assert len(server.log) == 1


def test_a_silence_is_waited_through_once_and_again_only_amid_a_long_transfer(server: Server) -> None:
    server.odd["/a.bin"] = lambda handler: time.sleep(0.5)
    quick = replace(OWN, read_seconds=0.1)
    with pytest.raises(AddressError, match=r"sent nothing for 0.1 s"):
        HttpSource(f"{server.base}/a.bin", client=Client(quick))
    assert len(server.log) == 1
    client = Client(quick)
    client.nbytes = 9 << 20
    with pytest.raises(AddressError, match=r"sent nothing for 0.1 s"):
        HttpSource(f"{server.base}/a.bin", client=client)
    assert len(server.log) == 3


def test_a_slow_line_has_as_long_as_its_bytes_take_and_numbers_have_no_such_end() -> None:
    client = Client(replace(OWN_LOOK, look_seconds=1.0, look_slowest=1000))
    client._began -= 5.0
    client.nbytes = 10_000
    assert 5.9 < client._left("a") <= 6.0
    client.nbytes = 0
    with pytest.raises(NeedsWholeFile):
        client._left("a")
    client.end_look()
    assert client._left("a") == float("inf")


def test_the_header_of_a_numpy_archive_comes_once_and_no_byte_twice(server: Server) -> None:
    buffer = io.BytesIO()
    arrays = {f"blocks.{i}.weight": np.full(250, i, dtype=np.float32) for i in range(700)}
    np.savez(buffer, **arrays)
    server.files["/many.npz"] = buffer.getvalue()
    checkpoint = open_checkpoint(f"{server.base}/many.npz")
    assert len(checkpoint.tensors) == 700
    assert_nothing_came_twice(server, "/many.npz")
    assert server.sent <= len(server.files["/many.npz"])


def test_a_digest_takes_what_the_header_brought(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.files["/a.safetensors"] = safetensors.numpy.save({"w": np.arange(1_000_000, dtype=np.float32)})
    assert run(["open", "--digest", f"{server.base}/a.safetensors"]) == 0
    assert_nothing_came_twice(server, "/a.safetensors")
    assert server.sent == len(server.files["/a.safetensors"])


@pytest.mark.parametrize("command", ["identify", "card"])
def test_no_command_reads_the_numbers_of_an_address_for_a_hint(
    server: Server, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    server.files["/a.safetensors"] = safetensors.numpy.save({"fc.weight": np.ones((1000, 1000), dtype=np.float32)})
    address = f"{server.base}/a.safetensors"
    run([command, address])
    assert server.sent < 300_000
    assert "that would fetch all of it (4.00 MB); --digest does" in capsys.readouterr().out
    server.log.clear()
    server.sent = 0
    run([command, address, "--digest"])
    assert_nothing_came_twice(server, "/a.safetensors")
    assert server.sent == len(server.files["/a.safetensors"])
    assert "that would fetch" not in capsys.readouterr().out


def test_a_file_here_is_digested_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    safetensors.numpy.save_file({"fc.weight": np.ones((4, 4), dtype=np.float32)}, tmp_path / "a.safetensors")
    run(["card", str(tmp_path / "a.safetensors")])
    said = capsys.readouterr().out
    assert "not read" not in said and "--digest" not in said


def test_parts_at_addresses_are_distant(server: Server, tmp_path: Path) -> None:
    from inspector.checkpoint.joined_source import JoinedSource
    from inspector.checkpoint.source import BufferSource

    server.files["/a.bin"] = BODY
    near = BufferSource(b"abc", "a")
    assert is_distant(JoinedSource([near, HttpSource(f"{server.base}/a.bin")], "both"))
    assert not is_distant(JoinedSource([near, near], "both"))


REFUSALS = {
    401: "sign in only",
    403: "does not give it to everybody",
    404: "Check the address",
    429: "asked too often",
    500: "fault is the server's",
    503: "overloaded or being mended",
}


@pytest.mark.parametrize("status", REFUSALS)
def test_each_refusal_has_its_own_advice(server: Server, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(Client, "_sleep", lambda *_: None)
    server.odd["/a.bin"] = lambda handler: handler.answer(status, b"")
    with pytest.raises(AddressError) as error:
        HttpSource(f"{server.base}/a.bin")
    assert REFUSALS[status] in error.value.hint
    assert ("Check the address" in error.value.hint) == (status == 404)


def test_a_refused_range_is_no_empty_file(server: Server) -> None:
    told = {"Content-Range": "bytes */44769756"}
    server.odd["/a.bin"] = lambda handler: handler.answer(416, b"", told)
    with pytest.raises(NeedsWholeFile, match=r"refuses ranges of a file of 44\.8 MB"):
        HttpSource(f"{server.base}/a.bin")
    server.files["/empty.bin"] = b""
    assert HttpSource(f"{server.base}/empty.bin").size == 0


def test_two_lengths_are_said(server: Server) -> None:
    server.files["/a.bin"] = BODY
    source = HttpSource(f"{server.base}/a.bin")
    server.odd["/a.bin"] = lambda handler: handler.answer(416, b"", {"Content-Range": "bytes */1000"})
    with pytest.raises(AddressError, match="said that it has 600,000 bytes, and now says 1,000"):
        source.read(500_000, 10)


def test_a_redirect_with_a_password_is_refused_where_a_typed_one_is(server: Server) -> None:
    server.files["/b.bin"] = BODY
    server.odd["/a.bin"] = lambda handler: handler.redirect(server.base.replace("//", "//me:hush@") + "/b.bin")
    assert HttpSource(f"{server.base}/a.bin").size == len(BODY)
    assert server.log[-1].headers["Authorization"] is None
    visitor = replace(OWN, passwords=False)
    with pytest.raises(AddressRefused, match="redirects to an address with a name and password") as error:
        HttpSource(f"{server.base}/a.bin", client=Client(visitor))
    assert "hush" not in str(error.value)


def test_a_far_date_is_a_date(server: Server) -> None:
    far = {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}
    server.odd["/a.bin"] = lambda handler: handler.answer(429, b"", far)
    with pytest.raises(AddressError, match="come back on 2100-12-31"):
        HttpSource(f"{server.base}/a.bin")


def test_an_escaped_address_in_a_path_is_told_once(server: Server) -> None:
    server.odd["/to/file%3A%2F%2F%2Fetc%2Fpasswd"] = lambda handler: handler.redirect("file:///etc/passwd")
    with pytest.raises(AddressRefused) as error:
        HttpSource(f"{server.base}/to/file%3A%2F%2F%2Fetc%2Fpasswd")
    assert str(error.value).count("file:///etc/passwd") == 1


def test_a_checksum_that_fails_at_an_address_may_be_a_change(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"w": torch.zeros(3)}, buffer)
    data = bytearray(buffer.getvalue())
    place = data.index(b"FloatStorage")
    data[place + 11] ^= 1
    server.files["/a.pt"] = bytes(data)
    (tmp_path / "a.pt").write_bytes(data)
    told = " ".join(finding.says for finding in open_checkpoint(f"{server.base}/a.pt").findings)
    assert "unless the file was changed at its address while it was read" in told
    here = " ".join(finding.says for finding in open_checkpoint(tmp_path / "a.pt").findings)
    assert "checksum" in here and "changed at its address" not in here


@pytest.mark.parametrize("command", ["check", "scan"])
def test_what_looks_at_this_machine_says_so_of_an_address(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "http://127.0.0.1:9/a/r18.safetensors"]) == 2
    said = capsys.readouterr().err
    assert f"is an address, and `{command}` looks at files and folders of this machine" in said
    assert "There is no file" not in said
