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


def written_by(value: object, tmp_path: Path, *more: str) -> dict[str, Tensor] | None:
    """What `unwrap` wrote, None where it wrote nothing."""
    torch.save(value, tmp_path / "in.pth")
    out = tmp_path / "out.pth"
    out.unlink(missing_ok=True)
    code = run(["unwrap", str(tmp_path / "in.pth"), *more, "-o", str(out)])
    assert (code == 0) == out.exists()
    return torch.load(out) if out.exists() else None


def test_names_that_did_not_change_are_not_proved_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert written_by({"net": Own().state_dict()}, tmp_path) is not None
    out = " ".join(capsys.readouterr().out.split())
    assert "No name changed, every byte of the numbers equal" in out
    assert "Names changed" not in out


def test_a_network_in_dicts_of_dicts_is_joined_and_not_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Own()
    parts = {name: dict(part.state_dict()) for name, part in model.named_children()}
    for value in ({"net": parts}, parts, {"epoch": 3, "a": {"b": parts}}):
        found = written_by(value, tmp_path)
        assert found is not None
        copy.deepcopy(model).load_state_dict(found)
        assert all(torch.equal(found[name], tensor) for name, tensor in model.state_dict().items())
    out = " ".join(capsys.readouterr().out.split())
    assert "2 groups joined, each under its key" in out
    assert "state dict of 2 tensors" not in out


def test_two_networks_in_one_file_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"netG": prefixed(Own(), "module."), "netD": prefixed(Own(), "module.")}
    assert written_by(value, tmp_path) is None
    assert 'holds 2 sets of weights, "netG", "netD"' in " ".join(capsys.readouterr().err.split())
    assert list(written_by(value, tmp_path, "--state", "netD") or ()) == list(Own().state_dict())


def test_one_state_dict_under_two_keys_is_one(tmp_path: Path) -> None:
    state = Own().state_dict()
    assert list(written_by({"state_dict": state, **state}, tmp_path) or ()) == list(state)


def test_different_wrappers_in_front_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = list(Own().state_dict())
    value = {f"{'module' if i % 2 else '_orig_mod'}.{name}": torch.ones(2) for i, name in enumerate(names)}
    assert written_by(value, tmp_path) is None
    assert 'module.stem.bias begins with "module." and others with "_orig_mod."' in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_number_as_a_key_is_left_behind_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = written_by({"net": {1: torch.zeros(2), "1": torch.ones(3), "module.a": torch.ones(1)}}, tmp_path)
    assert found is not None and {name: t.shape[0] for name, t in found.items()} == {"1": 3, "module.a": 1}
    assert "1: a key that is no text" in " ".join(capsys.readouterr().out.split())


def test_the_averaged_weights_if_asked(tmp_path: Path) -> None:
    other = Own()
    torch.save({"model": prefixed(Own(), "module."), "ema": prefixed(other, "module.")}, tmp_path / "in.pth")
    assert run(["unwrap", str(tmp_path / "in.pth"), "--ema", "-o", str(tmp_path / "out.pth")]) == 0
    found = torch.load(tmp_path / "out.pth")
    assert all(torch.equal(found[name], tensor) for name, tensor in other.state_dict().items())


def test_a_beginning_of_ones_own_stays_until_somebody_says_so(tmp_path: Path) -> None:
    own = Own().state_dict()
    torch.save({f"backbone.model.{name}": tensor for name, tensor in own.items()}, tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    assert checkpoint.weights is not None
    kept = unwrap(checkpoint.weights)
    assert kept.says == "" and kept.shared == ("backbone", "backbone.model")
    assert kept.state.tensors == checkpoint.weights.tensors
    for prefix, left in (("backbone", "model."), ("backbone.model", "")):
        found = unwrap(checkpoint.weights, prefix=prefix)
        assert found.says == f'"{prefix}." dropped from 4 names.'
        export_as_is(checkpoint, found.state, tmp_path / "out.pth")
        made = torch.load(tmp_path / "out.pth")
        assert list(made) == [f"{left}{name}" for name in own]
        assert all(torch.equal(made[f"{left}{name}"], tensor) for name, tensor in own.items())


def test_it_comes_off_below_a_wrapper_and_takes_the_versions_along(tmp_path: Path) -> None:
    net = nn.Sequential()
    net.net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    torch.save({"model": nn.DataParallel(net).state_dict(), "epoch": 1}, tmp_path / "in.pth")
    checkpoint = open_checkpoint(tmp_path / "in.pth")
    assert checkpoint.weights is not None
    found = unwrap(checkpoint.weights, prefix="net")
    assert found.says == 'Taken out of model, "module." dropped from 7 names, "net." dropped from 7 names.'
    export_as_is(checkpoint, found.state, tmp_path / "out.pth")
    nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).load_state_dict(torch.load(tmp_path / "out.pth"), strict=True)
    assert dict(found.state.versions)["1"] == 2


@pytest.mark.parametrize("names", [["stem.a", "head.b"], ["net.only"], ["net", "net.a"], ["a", "b"]])
def test_where_not_every_name_has_it_nothing_is_offered(names: list[str], tmp_path: Path) -> None:
    torch.save({name: torch.ones(2) for name in names}, tmp_path / "in.pth")
    state = open_checkpoint(tmp_path / "in.pth").weights
    assert state is not None and unwrap(state).shared == ()
    with pytest.raises(ExportError, match=r'does not begin with "other\."'):
        unwrap(state, prefix="other")


def test_the_command_offers_it_and_drops_it_when_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(prefixed(Own(), "net."), tmp_path / "in.pth")
    words = ["unwrap", str(tmp_path / "in.pth"), "--output", str(tmp_path / "out.pth")]
    assert run(words) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert 'Every name begins with "net."' in told and "--drop-prefix net" in told
    assert run([*words, "--overwrite", "--drop-prefix", "net."]) == 0
    assert set(torch.load(tmp_path / "out.pth")) == set(Own().state_dict())
    assert run([*words, "--overwrite", "--drop-prefix", "other"]) == 1
    assert 'does not begin with "other."' in capsys.readouterr().err
