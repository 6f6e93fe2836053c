"""A file with several sets of weights: each is examined, each number is read once."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from torch import nn

from inspector.checkpoint import source
from inspector.findings import Severity
from inspector.health import examine as examine_module
from inspector.health.examine import examine, examine_sets
from inspector.health.thresholds import DEFAULTS
from inspector.lint.numbers import NumbersCheck
from inspector.readers import open_checkpoint


def saved(path: Path, *, sick: bool) -> Path:
    torch.manual_seed(0)
    generator, critic = nn.Linear(40, 30), nn.Linear(30, 20)
    if sick:
        with torch.no_grad():
            critic.weight[3, 4] = torch.nan
    torch.save({"generator": generator.state_dict(), "discriminator": critic.state_dict()}, path)
    return path


@pytest.mark.parametrize("sick", [True, False])
def test_what_is_wrong_with_the_second_set_is_said_with_its_name(sick: bool, tmp_path: Path) -> None:
    found = NumbersCheck(thresholds=DEFAULTS)(open_checkpoint(saved(tmp_path / "gan.pth", sick=sick)))
    said = [f.says for f in found if f.id == "non-finite"]
    assert [text.split(" holds")[0] for text in said] == (["In discriminator: weight"] if sick else [])


def test_of_one_set_it_says_what_examine_says(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(nn.Linear(40, 30).state_dict(), tmp_path / "one.pth")
    checkpoint = open_checkpoint(tmp_path / "one.pth")
    ((state, report),) = examine_sets(checkpoint)
    assert state is checkpoint.weights
    alone = examine(checkpoint)
    assert report.findings == alone.findings
    assert report.weights.tensors == alone.weights.tensors


def test_what_cannot_be_read_of_another_set_is_told_under_the_same_name(tmp_path: Path) -> None:
    whole, empty = torch.randn(6, 5), torch.zeros(6, 5, device="meta")
    torch.save({"state_dict": {"a": whole, "b": empty}, "state_dict_ema": {"a": empty, "b": whole}}, tmp_path / "w.pth")
    for _, report in examine_sets(open_checkpoint(tmp_path / "w.pth")):
        assert len(report.weights.tensors) == report.beyond == 1
        assert len(report.weights.skipped) == len(report.beyond_skipped) == 1


@pytest.mark.parametrize("sets", [True, False])
def test_each_number_is_read_once(sets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = open_checkpoint(saved(tmp_path / "gan.pth", sick=False))
    read: list[tuple[int, int]] = []
    # Some checks look at a few numbers once more.
    monkeypatch.setattr(examine_module, "CHECKS", ())
    monkeypatch.setattr(source.PathSource, "read", _counting(source.PathSource.read, read))
    (examine_sets if sets else examine)(checkpoint)
    numbers = sum(t.nbytes for t in checkpoint.tensors)
    # Small tensors are read together, with what a zip archive has between them: less than 256 bytes each.
    assert numbers <= sum(n for _, n in read) < numbers + 256 * len(checkpoint.tensors)
    read.sort()
    assert all(start + n <= following for (start, n), (following, _) in itertools.pairwise(read))


def _counting(own, read: list[tuple[int, int]]):  # type: ignore[no-untyped-def]
    def counted(self, offset: int, n: int) -> bytes:  # type: ignore[no-untyped-def]
        read.append((offset, n))
        answer: bytes = own(self, offset, n)
        return answer

    return counted


def test_what_is_about_the_file_is_said_once(tmp_path: Path) -> None:
    torch.manual_seed(0)
    live = {f"{i}.weight": torch.randn(20, 20) for i in range(6)}
    lag = {name: tensor + 0.01 for name, tensor in live.items()} | {"3.weight": torch.randn(20, 20)}
    torch.save({"state_dict": live, "state_dict_ema": lag}, tmp_path / "run.pth")
    found = NumbersCheck(thresholds=DEFAULTS)(open_checkpoint(tmp_path / "run.pth"))
    assert [f.id for f in found if f.severity in (Severity.WARNING, Severity.ERROR)] == ["average-unlike"]
