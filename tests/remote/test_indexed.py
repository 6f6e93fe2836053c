"""An audit of an index of shards at an address, in a bucket or on the hub: one checkpoint, as its folder is here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from inspector.cli.main import run
from inspector.lint.audit import audit
from inspector.lint.check import check
from inspector.lint.report import CheckedFile
from inspector.lint.request import CheckRequest, Settings
from inspector.survey.survey import How
from inspector.sweep.store import open_store
from tests.hub_serving import publish
from tests.remote.test_buckets import Bucket, bucket
from tests.serving import Server, serving

__all__ = ["bucket"]

INDEX = "model.safetensors.index.json"
SHARDS = tuple(f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3))


def shards() -> dict[str, bytes]:
    """The second of three is sick; together they are one network's layers."""
    states = [{f"layers.{n}.weight": torch.full((3, 4), 0.1 + n), f"layers.{n}.bias": torch.ones(4)} for n in range(3)]
    states[1]["layers.1.weight"][1, 2] = float("nan")
    found = {name: save(state) for name, state in zip(SHARDS, states, strict=True)}
    weight_map = {key: name for name, state in zip(SHARDS, states, strict=True) for key in state}
    return {**found, INDEX: json.dumps({"metadata": {}, "weight_map": weight_map}).encode()}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        found.files |= {f"/m%20a/{name}": data for name, data in shards().items()}
        yield found


def audited(store: Path, *addresses: str, headers: bool = False) -> tuple[CheckedFile, ...]:
    request = CheckRequest(paths=(), base=store.parent, settings=Settings(), headers=headers)
    return audit(request, How(store=open_store(str(store))), addresses=addresses).report.files


def here(tmp_path: Path, files: Mapping[str, bytes]) -> CheckedFile:
    """What a check of the folder on disk says of the checkpoint."""
    folder = tmp_path / "here" / "m"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    request = CheckRequest(paths=(folder.parent,), base=folder.parent, settings=Settings())
    (found,) = check(request).report.files
    return found


def said(report: CheckedFile) -> dict[str, Any]:
    return {
        "nbytes": report.nbytes,
        "format": report.format,
        "findings": [(one.id, one.says, one.subjects) for one in report.findings],
    }


def on_server(server: Server, bucket: Bucket) -> str:
    return f"{server.base}/m%20a/{INDEX}"


def in_bucket(server: Server, bucket: Bucket) -> str:
    for name, data in shards().items():
        bucket.put(f"m/{name}", data)
    bucket.put("m/sub/other.safetensors", save({"x": torch.ones(2)}))
    return f"memory://models/m/{INDEX}"


def on_hub(server: Server, bucket: Bucket) -> str:
    publish(server, "org/name", {**shards(), "README.md": b"#"})
    return f"hf://org/name/{INDEX}"


@pytest.mark.parametrize("publish_at", [on_server, in_bucket, on_hub])
def test_an_index_is_audited_as_its_folder_is(
    server: Server,
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    publish_at: Callable[[Server, Bucket], str],
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.base)
    (report,) = audited(tmp_path / "s", publish_at(server, bucket))
    assert said(report) == said(here(tmp_path, shards()))
    assert [one.id for one in report.findings if one.severity.value == "error"] == ["non-finite"]
    assert report.path.endswith(INDEX)


def test_the_day_after_nothing_of_it_is_read_and_a_new_shard_is(server: Server, tmp_path: Path) -> None:
    address = f"{server.base}/m%20a/{INDEX}"
    (first,) = audited(tmp_path / "s", address)
    # A byte of each for what it is known by; the index, whose names are needed; and each file once.
    assert len(server.log) == (1 + 3) + 1 + (1 + 3)
    server.log.clear()
    assert [replace(one) for one in audited(tmp_path / "s", address)] == [first]
    assert len(server.log) == 1 + 1 + 3
    well = {"layers.1.weight": torch.full((3, 4), 0.5), "layers.1.bias": torch.ones(4)}
    server.files[f"/m%20a/{SHARDS[1]}"] = save(well)
    (later,) = audited(tmp_path / "s", address)
    assert "non-finite" in [one.id for one in first.findings]
    assert "non-finite" not in [one.id for one in later.findings]


def test_shards_that_are_named_besides_have_no_second_row(server: Server, tmp_path: Path) -> None:
    addresses = [f"{server.base}/m%20a/{name}" for name in (SHARDS[0], INDEX, SHARDS[2])]
    assert [one.path.rpartition("/")[2] for one in audited(tmp_path / "s", *addresses)] == [INDEX]


def test_what_lies_elsewhere_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    with serving() as other:
        other.files["/x.safetensors"] = save({"x": torch.ones(2)})
        told = json.loads(server.files[f"/m%20a/{INDEX}"])
        names = ("../x.safetensors", "/x.safetensors", f"{other.base}/x.safetensors", "sub/x.safetensors", "..")
        told["weight_map"] |= {f"x{n}": name for n, name in enumerate(names)}
        server.files[f"/m%20a/{INDEX}"] = json.dumps(told).encode()
        (report,) = audited(tmp_path / "s", f"{server.base}/m%20a/{INDEX}")
        assert other.log == []
    assert {path.rpartition("/")[0] for path in server.paths()} == {"/m%20a"}
    assert any(one.severity.value == "error" for one in report.findings)


def test_a_shard_that_is_gone_is_a_finding_and_is_read_when_it_is_there(server: Server, tmp_path: Path) -> None:
    data = server.files.pop(f"/m%20a/{SHARDS[2]}")
    address = f"{server.base}/m%20a/{INDEX}"
    (report,) = audited(tmp_path / "s", address, headers=True)
    errors = [one for one in report.findings if one.severity.value == "error"]
    assert errors and any(SHARDS[2] in one.says for one in errors)
    server.files[f"/m%20a/{SHARDS[2]}"] = data
    (again,) = audited(tmp_path / "s", address, headers=True)
    assert not [one for one in again.findings if one.severity.value == "error"]


@pytest.mark.parametrize("headers", [False, True])
@pytest.mark.parametrize("gone", SHARDS)
def test_a_shard_that_is_gone_costs_itself_alone(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: str, headers: bool
) -> None:
    """The beginnings of the next shards are fetched while one is read: what is not there is told of its own row."""
    del server.files[f"/m%20a/{gone}"]
    address = f"{server.base}/m%20a/{INDEX}"
    (report,) = audited(tmp_path / "s", address, headers=headers)
    (lost,) = [one for one in report.findings if one.id == "unreadable-shard"]
    assert lost.says.startswith(
        f"1 shard is unreadable: {gone} ({gone} cannot be fetched: the server answers 404 Not Found), and with it 2 of "
        "6 tensors, first "
    )
    assert run(["open", address]) in (0, 1)
    assert "1 shard is unreadable" in capsys.readouterr().out
    sick = gone != SHARDS[1] and not headers
    assert ("non-finite" in [one.id for one in report.findings]) == sick


def test_shards_that_are_all_gone_are_told_with_advice_that_fits(server: Server, tmp_path: Path) -> None:
    for name in SHARDS:
        del server.files[f"/m%20a/{name}"]
    (report,) = audited(tmp_path / "s", f"{server.base}/m%20a/{INDEX}")
    (only,) = report.findings
    assert f"first {SHARDS[0]} cannot be fetched: the server answers 404 Not Found. Check the address." in only.says
    assert ".." not in only.says and "same folder" not in only.says


def test_a_shard_that_fails_while_it_is_read_is_said_and_not_kept(server: Server, tmp_path: Path) -> None:
    """Listed, and then refused: what a server would not send now it may send tomorrow."""
    path, asked = f"/m%20a/{SHARDS[1]}", []

    def refuse(handler: Any) -> None:
        asked.append(handler.headers.get("Range"))
        handler.answer_range(server.files[path]) if asked[-1] == "bytes=0-0" else handler.answer(403, b"")

    server.odd[path] = refuse
    address = f"{server.base}/m%20a/{INDEX}"
    (report,) = audited(tmp_path / "s", address)
    assert "unreadable-file" in [one.id for one in report.findings] and len(asked) > 1
    del server.odd[path]
    (again,) = audited(tmp_path / "s", address)
    assert said(again) == said(here(tmp_path, shards()))


def test_an_index_that_is_none_is_a_file_of_its_own(server: Server, tmp_path: Path) -> None:
    server.files["/x.index.json"] = b'{"weight_map": [1, 2'
    assert run(["audit", f"{server.base}/x.index.json", "--store", str(tmp_path / "s"), "--headers", "--all"]) in (0, 1)
    assert server.paths().count("/x.index.json") == len(server.log) <= 5
