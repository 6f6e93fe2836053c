"""A file that is not whole is trouble, and no other model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.cli.main import run
from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Relation
from tests.compare.files import opened, write

NAMES = [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    state = {f"l{n}.weight": random.standard_normal((8, 8)).astype(np.float32) for n in range(6)}
    write(tmp_path / "one.safetensors", dict(state))
    write(tmp_path / "other.safetensors", {**state, "l0.weight": state["l0.weight"] + 1})
    (tmp_path / "shards").mkdir()
    index = {}
    for at, name in enumerate(NAMES):
        held = dict(list(state.items())[2 * at : 2 * at + 2])
        write(tmp_path / "shards" / name, dict(held))
        index |= dict.fromkeys(held, name)
    (tmp_path / "shards" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    torch.save({name: torch.from_numpy(x) for name, x in state.items()}, tmp_path / "whole.pth")
    (tmp_path / "half.pth").write_bytes((tmp_path / "whole.pth").read_bytes()[:1800])
    data = (tmp_path / "other.safetensors").read_bytes()
    (tmp_path / "half.safetensors").write_bytes(data[: len(data) - 600])
    return tmp_path


def test_a_missing_shard_is_trouble_and_named(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [str(places / "one.safetensors"), str(places / "shards")]
    assert run(["diff", *sides]) == 0
    (places / "shards" / NAMES[1]).unlink()
    capsys.readouterr()
    for words in (sides, sides[::-1], [*sides, "-q"], [*sides, "--json"], [*sides, "--names-only"]):
        assert run(["diff", *words]) == 2
        assert NAMES[1] in capsys.readouterr().err
    diff = compare_checkpoints(opened(places / "one.safetensors"), opened(places / "shards"))
    assert diff.verdicts == () and NAMES[1] in diff.says
    assert sorted(t.relation for t in diff.tensors) == [*[Relation.SAME] * 4, *[Relation.UNREAD] * 2]
    assert "only in the first" not in diff.says


@pytest.mark.parametrize("half", ["half.pth", "half.safetensors"])
def test_half_a_file_is_trouble_whatever_else_differs(
    places: Path, half: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([half, "one.safetensors"], ["one.safetensors", half], ["one.safetensors", "other.safetensors", half]):
        assert run(["diff", "-q", *(str(places / word) for word in words)]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and "not whole" in captured.err


def test_whole_files_lack_nothing(places: Path) -> None:
    for name in ("shards", "whole.pth", "other.safetensors"):
        diff = compare_checkpoints(opened(places / "one.safetensors"), opened(places / name))
        assert diff.incomplete == ()
