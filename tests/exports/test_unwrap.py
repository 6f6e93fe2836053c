"""Weights without what is wrapped around them, for a network that nobody knows: names change, numbers do not."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from inspector.cli.main import run
from inspector.errors import ExportError
from inspector.exports.convert import export_as_is
from inspector.exports.unwrap import unwrap
from inspector.readers import open_checkpoint


class Own(nn.Module):
    """No library knows it; "module" is a name of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 6)
        self.module = nn.Linear(6, 2)


def unwrapped(value: object, tmp_path: Path) -> tuple[dict[str, Tensor], str]:
    torch.save(value, tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    assert checkpoint.weights is not None
    found = unwrap(checkpoint.weights)
    export_as_is(checkpoint, found.state, tmp_path / "out.pth")
    return torch.load(tmp_path / "out.pth"), found.says


def prefixed(model: nn.Module, prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.", "module.module.", "_fpw_module."]
)
def test_what_every_name_begins_with_comes_off(prefix: str, tmp_path: Path) -> None:
    model = Own()
    found, says = unwrapped({"state": prefixed(model, prefix)}, tmp_path)
    copy.deepcopy(model).load_state_dict(found)
    assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())
    assert says.startswith("Taken out of state")


def test_segments_in_the_middle_come_off_where_no_network_means_them(tmp_path: Path) -> None:
    names = ["layers.0._checkpoint_wrapped_module.weight", "layers.0._checkpoint_wrapped_module.bias", "head.weight"]
    found, says = unwrapped({name: torch.ones(2) for name in names}, tmp_path)
    assert list(found) == ["layers.0.weight", "layers.0.bias", "head.weight"]
    assert says == '"_checkpoint_wrapped_module." dropped from 2 names.'


def test_a_part_that_is_called_module_stays(tmp_path: Path) -> None:
    found, says = unwrapped(Own().state_dict(), tmp_path)
    assert list(found) == list(Own().state_dict())
    assert says == ""


def test_the_counter_beside_an_average_is_left_out(tmp_path: Path) -> None:
    average = torch.optim.swa_utils.AveragedModel(Own())
    found, says = unwrapped(average.state_dict(), tmp_path)
    Own().load_state_dict(found)
    assert "n_averaged left out" in says


def test_two_tensors_of_one_name_are_refused(tmp_path: Path) -> None:
    torch.save({"a._orig_mod.weight": torch.ones(2), "a.weight": torch.zeros(2)}, tmp_path / "in.pth")
    weights = open_checkpoint(tmp_path / "in.pth").weights
    assert weights is not None
    with pytest.raises(ExportError, match=r"a\._orig_mod\.weight and a\.weight would both be called a\.weight"):
        unwrap(weights)


def test_the_command_says_what_was_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"net": prefixed(Own(), "module.")}, tmp_path / "in.pth")
    assert run(["unwrap", str(tmp_path / "in.pth"), "-o", str(tmp_path / "out.safetensors")]) == 0
    out = capsys.readouterr().out
    assert '"module." dropped from 4 names' in out
    assert "Whether a model takes them was not asked" in out


def test_the_averaged_weights_if_asked(tmp_path: Path) -> None:
    other = Own()
    torch.save({"model": prefixed(Own(), "module."), "ema": prefixed(other, "module.")}, tmp_path / "in.pth")
    assert run(["unwrap", str(tmp_path / "in.pth"), "--ema", "-o", str(tmp_path / "out.pth")]) == 0
    found = torch.load(tmp_path / "out.pth")
    assert all(torch.equal(found[name], tensor) for name, tensor in other.state_dict().items())
