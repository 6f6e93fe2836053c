"""Shards at a plain address: opened by their index, each for one request, and nothing but what lies beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import torch
from safetensors.torch import save

from inspector.checkpoint.data import read_array
from inspector.cli.main import run
from inspector.errors import CorruptFile
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from inspector.readers.entry import Opening
from inspector.readers.opening import ReaderOpening
from inspector.readers.remote import open_remote
from tests.serving import Server, serving

SHARDS = [f"model-{n:05}-of-00003.safetensors" for n in (1, 2, 3)]
INDEX = "/m%20a/model.safetensors.index.json"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        weight_map = {f"w{n}": name for n, name in enumerate(SHARDS)}
        for n, name in enumerate(SHARDS):
            found.files[f"/m%20a/{name}"] = save({f"w{n}": torch.full((4,), float(n))})
        found.files[INDEX] = json.dumps({"metadata": {}, "weight_map": weight_map}).encode()
        yield found


def opening() -> Opening:
    return ReaderOpening(limits=DEFAULT_LIMITS.metered())


def test_an_index_at_an_address_opens_its_shards_for_one_request_each(server: Server) -> None:
    remote = open_remote(f"{server.base}{INDEX}?key=1", opening())
    assert sorted(asked.path for asked in server.log) == sorted(
        f"{path}?key=1" for path in (INDEX, *(f"/m%20a/{name}" for name in SHARDS))
    )
    checkpoint = remote.checkpoint
    assert checkpoint.format == "sharded" and [tensor.name for tensor in checkpoint.tensors] == ["w0", "w1", "w2"]
    assert [read_array(checkpoint, tensor).tolist() for tensor in checkpoint.tensors] == [
        [float(n)] * 4 for n in range(3)
    ]
    assert [part.name for part in remote.parts] == ["model.safetensors.index.json", *SHARDS]
    assert remote.nbytes == sum(map(len, server.files.values()))
    assert not [finding for finding in checkpoint.findings if finding.severity.value == "error"]


def test_only_what_lies_beside_the_index_is_asked_for(server: Server) -> None:
    with serving() as other:
        other.files["/x.safetensors"] = save({"x": torch.ones(2)})
        server.files["/x.safetensors"] = save({"x": torch.ones(2)})
        names = (
            "../x.safetensors",
            "/x.safetensors",
            f"{other.base}/x.safetensors",
            "sub/x.safetensors",
            "..",
            "..\\x",
        )
        told = json.loads(server.files[INDEX])
        told["weight_map"] |= {f"x{n}": name for n, name in enumerate(names)}
        server.files[INDEX] = json.dumps(told).encode()
        checkpoint = open_checkpoint(f"{server.base}{INDEX}")
        assert other.log == []
    assert {path.rpartition("/")[0] for path in server.paths()} == {"/m%20a"}
    assert [tensor.name for tensor in checkpoint.tensors] == ["w0", "w1", "w2"]
    assert any(finding.severity.value == "error" for finding in checkpoint.findings)


def test_a_shard_that_is_gone_is_told_and_the_others_are_shown(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    del server.files[f"/m%20a/{SHARDS[1]}"]
    checkpoint = open_checkpoint(f"{server.base}{INDEX}")
    assert [tensor.name for tensor in checkpoint.tensors] == ["w0", "w2"]
    (part,) = [part for part in checkpoint.parts if part.name == SHARDS[1]]
    assert not part.opened and "404" in part.says
    for name in (SHARDS[0], SHARDS[2]):
        del server.files[f"/m%20a/{name}"]
    with pytest.raises(CorruptFile, match="none of the 3 files"):
        open_checkpoint(f"{server.base}{INDEX}")


def test_an_audit_of_an_index_alone_says_what_can_be_done(
    server: Server, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", f"{server.base}{INDEX}", "--store", f"{tmp_path}/s", "--headers", "--all"]) in (0, 1)
    assert "put it into one zip" not in capsys.readouterr().out
