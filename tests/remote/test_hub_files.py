"""Every file of a repository, or of an owner's repositories, one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from inspector.cli.main import run
from inspector.errors import AddressError
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint
from inspector.readers.hub.files import list_hub
from tests.hub_serving import COMMIT, publish
from tests.serving import Server, serving


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.base)
        yield server


def test_the_files_of_a_repository_at_its_commit(hub: Server) -> None:
    data = save({"w": torch.ones(400)})
    publish(hub, "org/name", {"model.safetensors": data, "old/a.bin": b"x", "README.md": b"#"})
    files = {file.place.path: file for file in list_hub("hf://org/name", DEFAULT_LIMITS)}
    assert set(files) == {"model.safetensors", "old/a.bin", "README.md"}
    model = files["model.safetensors"]
    assert model.address == f"hf://org/name@{COMMIT}/model.safetensors"
    assert (model.size, len(model.tag), files["README.md"].tag) == (len(data), 64, COMMIT)
    assert [tensor.shape for tensor in open_checkpoint(model.open()).tensors] == [(400,)]
    assert [file.place.path for file in list_hub("hf://org/name/old", DEFAULT_LIMITS)] == ["old/a.bin"]


def test_all_models_of_an_owner(hub: Server) -> None:
    for name in ("a", "b"):
        publish(hub, f"org/{name}", {f"{name}.bin": b"x"})
    hub.files["/api/models"] = json.dumps([{"id": "org/a"}, {"id": "org/b"}]).encode()
    assert [file.address for file in list_hub("hf://org/", DEFAULT_LIMITS)] == [
        f"hf://org/a@{COMMIT}/a.bin",
        f"hf://org/b@{COMMIT}/b.bin",
    ]
    del hub.files["/api/models"]
    with pytest.raises(AddressError, match="does not list the models of nobody"):
        list(list_hub("hf://nobody/", DEFAULT_LIMITS))


def test_an_audit_by_headers_takes_one_request_for_each_safetensors_file(
    hub: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"{n}.safetensors": save({"w": torch.full((60_000,), float(n))}) for n in range(12)}
    publish(hub, "org/name", files)
    audit = ["audit", "hf://org/name", "--store", str(tmp_path / "s"), "--headers", "--jobs", "1", "--json"]
    assert run(audit) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["files"]) == 12 and hub.sent < 12 * 132_000
    asked = [path for path in hub.paths() if "/resolve/" in path]
    assert sorted(asked) == sorted(f"/org/name/resolve/{COMMIT}/{name}" for name in files)
    hub.log.clear()
    assert run(audit) == 0 and not [path for path in hub.paths() if "/resolve/" in path]
