"""One loader from a checkpoint to a model that runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torchvision

import inspector
from inspector.errors import KeysDoNotFit, MissingLibrary, UnknownArchitecture, UsageError


def _saved(path: Path, **more: object) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    state: dict[str, torch.Tensor] = torchvision.models.squeezenet1_1(num_classes=4).state_dict()
    torch.save(
        {f"module.{name}": tensor for name, tensor in state.items()} if not more else {"net": state, **more}, path
    )
    return state


def test_a_wrapped_file_becomes_the_recognised_model_with_every_weight(tmp_path: Path) -> None:
    state = _saved(tmp_path / "net.pth")
    ready = inspector.ready_model(inspector.open_checkpoint(tmp_path / "net.pth"))
    assert ready.name == "net.pth" and not ready.model.training
    assert ready.architecture.startswith("torchvision/squeezenet1_1")
    assert all(torch.equal(tensor, state[name]) for name, tensor in ready.model.state_dict().items())
    assert ready.preprocessing.crop == (224, 224) and ready.answer is None and ready.class_names == ()
    assert ready.weights_note == ""


def test_of_two_sets_of_weights_it_says_which_one_runs(tmp_path: Path) -> None:
    torch.manual_seed(2)
    other = torchvision.models.squeezenet1_1(num_classes=4).state_dict()
    state = _saved(tmp_path / "net.pth", ema={"module": other})
    checkpoint = inspector.open_checkpoint(tmp_path / "net.pth")
    ready = inspector.ready_model(checkpoint)
    assert torch.equal(ready.model.state_dict()["features.0.weight"], state["features.0.weight"])
    assert "'net'" in ready.weights_note and "ema" in ready.weights_note
    averaged = next(s for s in checkpoint.state_dicts if "ema" in s.path)
    turned = inspector.ready_model(checkpoint, state=averaged)
    assert torch.equal(turned.model.state_dict()["features.0.weight"], other["features.0.weight"])
    assert turned.others == ("net",)


def test_what_cannot_be_run_exactly_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(3, 3)}, tmp_path / "odd.pth")
    odd = inspector.open_checkpoint(tmp_path / "odd.pth")
    with pytest.raises(UnknownArchitecture, match=r"odd\.pth was not recognised"):
        inspector.ready_model(odd)
    with pytest.raises(UsageError, match="cannot be built"):
        (tmp_path / "keys.txt").write_text("a 3 3\n")
        inspector.ready_model(odd, inspector.parse_target(f"keys:{tmp_path / 'keys.txt'}"))
    with pytest.raises(KeysDoNotFit):
        inspector.ready_model(odd, inspector.parse_target("torchvision/alexnet"))


def test_without_torch_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _saved(tmp_path / "net.pth")
    checkpoint = inspector.open_checkpoint(tmp_path / "net.pth")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingLibrary, match="Running a model needs torch") as caught:
        inspector.ready_model(checkpoint)
    assert "pip install" in (caught.value.hint or "")
