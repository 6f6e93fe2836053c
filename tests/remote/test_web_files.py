"""An audit of plain addresses: each a file, by two requests more than its header takes, and one that is gone alone."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from inspector.cli.main import run
from inspector.errors import AddressError, AddressRefused, FileChanged
from inspector.readers import open_checkpoint
from inspector.readers.web_files import list_web
from tests.serving import Handler, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def test_one_byte_tells_what_a_file_is_known_by(server: Server) -> None:
    data = save({"w": torch.ones(400)})
    server.files |= {"/a.safetensors": data, "/empty.pth": b""}
    found, empty, gone = list_web([f"{server.base}/{name}" for name in ("a.safetensors", "empty.pth", "gone.pth")])
    assert [asked.span for asked in server.log] == ["bytes=0-0"] * 3 and server.sent < 10
    assert (found.size, empty.size) == (len(data), 0) and found.tag
    assert [tensor.shape for tensor in open_checkpoint(pickle.loads(pickle.dumps(found)).open()).tensors] == [(400,)]
    with pytest.raises(AddressError, match="404"):
        pickle.loads(pickle.dumps(gone)).open()
    with pytest.raises(AddressRefused):
        list_web(["https://"])


def test_a_server_without_ranges_gives_small_files_and_refuses_large_ones(server: Server) -> None:
    def whole(handler: Handler) -> None:
        handler.answer(200, server.files[handler.path])

    server.files |= {"/small.safetensors": save({"w": torch.ones(4)}), "/large.bin": bytes(1 << 20)}
    server.odd |= dict.fromkeys(server.files, whole)
    small, large = list_web([f"{server.base}{path}" for path in server.files])
    assert small.size == len(server.files["/small.safetensors"]) and small.failed is None
    assert large.failed is not None and "does not send parts" in str(large.failed)


def test_a_file_that_changes_meanwhile_is_remembered(server: Server) -> None:
    server.files["/a.bin"] = bytes(1 << 20)
    (found,) = list_web([f"{server.base}/a.bin"])
    source = found.open()
    source.read(0, 8)
    assert not source.changed()
    server.files["/a.bin"] = b"x" * (1 << 20)
    with pytest.raises(FileChanged):
        source.read(900_000, 8)
    assert source.changed()


def test_a_signature_and_a_password_are_in_no_name(server: Server) -> None:
    address = server.base.replace("://", "://me:secret@") + "/a.pth?Signature=abc&x=1"
    (found,) = list_web([address])
    assert "secret" not in found.address and "Signature" not in found.address
    (other,) = list_web([address.replace("x=1", "x=2")])
    assert found.address != other.address


def test_an_audit_of_a_list_of_addresses(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.files |= {f"/{n}.safetensors": save({"w": torch.tensor([0.1, 0.2 * n])}) for n in range(4)}
    server.files["/sick.safetensors"] = save({"w": torch.tensor([0.1, float("nan")])})
    lines = ["# the zoo", "", *(f"{server.base}{path}" for path in server.files), f"{server.base}/gone.pth"]
    (tmp_path / "list.txt").write_text("\n".join([*lines, lines[-1]]) + "\n")
    audit = ["audit", "--from", str(tmp_path / "list.txt"), "--store", str(tmp_path / "s"), "--jobs", "1", "--json"]
    assert run(audit) == 1
    report = json.loads(capsys.readouterr().out)
    said = {one["path"].rpartition("/")[2]: [found["id"] for found in one["findings"]] for one in report["files"]}
    assert said == {
        **{f"{n}.safetensors": [] for n in range(4)},
        "sick.safetensors": ["non-finite"],
        "gone.pth": ["unreadable-file"],
    }
    # Again: a byte of each, and what could not be had.
    server.log.clear()
    assert run(audit) == 1 and [one.span for one in server.log] == ["bytes=0-0"] * 6
    capsys.readouterr()
    # What changed is read anew.
    server.files["/sick.safetensors"] = save({"w": torch.tensor([0.1, 0.5, 0.2])})
    del server.files["/0.safetensors"]
    assert run(audit) == 1
    said = {one["path"].rpartition("/")[2]: one["findings"] for one in json.loads(capsys.readouterr().out)["files"]}
    assert not said["sick.safetensors"] and said["0.safetensors"]
    assert run(["audit", "--store", str(tmp_path / "s")]) == 2
    assert "nothing to audit" in capsys.readouterr().err
