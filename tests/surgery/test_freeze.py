"""The code that freezes is run: on torchvision's own models, through `train()` and a step of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch import nn

from inspector.errors import UsageError
from inspector.exports.export import export_repaired
from inspector.surgery.freeze import freeze_code
from inspector.surgery.plan import plan_surgery
from inspector.surgery.report import Drop, Extract, NewHead, Operation
from tests.surgery.networks import Detector, saved, trained


def ran(
    state: object, steps: tuple[Operation, ...], frozen: list[str], folder: Path, **more: Any
) -> tuple[dict[str, Any], str]:
    """(what the lines leave, the lines), run where the file lies. more: what they find already, a model."""
    checkpoint = saved(state, folder / "a.pth")
    code = freeze_code(checkpoint, plan_surgery(checkpoint, steps), frozen, factor=0.25)
    found: dict[str, Any] = dict(more)
    exec(compile(code.text, "frozen", "exec"), found)
    return found, code.text


def lies_in(name: str, modules: list[str]) -> bool:
    return any(name.startswith(f"{module}.") for module in modules)


@pytest.mark.parametrize(
    ("name", "frozen", "head"),
    [
        ("resnet18", ["conv1", "bn1", "layer1"], "fc"),
        ("mobilenet_v3_small", ["features.0", "features.1"], "classifier.3"),
        ("shufflenet_v2_x0_5", ["conv1", "stage2"], "fc"),
    ],
)
def test_a_training_step_moves_all_but_what_is_frozen(
    name: str, frozen: list[str], head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = trained(torchvision.models.get_model(name, weights=None, num_classes=4)).state_dict()
    made, _ = ran(state, (NewHead(module=head, classes=3),), frozen, tmp_path)
    model, optimizer = made["model"], made["optimizer"]
    norms = {path: module for path, module in model.named_modules() if isinstance(module, nn.BatchNorm2d)}
    for mode in (True, False, True):
        model.train(mode)
        assert {path for path, module in norms.items() if module.training} == {
            path for path in norms if mode and not lies_in(f"{path}.", frozen)
        }
    assert any(lies_in(f"{path}.", frozen) for path in norms)
    # Everything else trains: a frozen convolution has no other state than its weight.
    assert model.training and all(m.training for m in model.modules() if isinstance(m, nn.Conv2d | nn.Dropout))
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    torch.manual_seed(0)
    model(torch.randn(4, 3, 64, 64)).square().sum().backward()
    optimizer.step()
    after = model.state_dict()
    still = {key for key in before if torch.equal(before[key], after[key])}
    assert still == {key for key in before if lies_in(key, frozen)}
    names = {id(parameter): key for key, parameter in model.named_parameters()}
    rates = {names[id(p)]: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    learning = [key for key in names.values() if not lies_in(key, frozen)]
    assert rates == {key: 0.001 if lies_in(key, [head]) else 0.00025 for key in learning}


def test_the_lines_of_a_written_file_load_that(
    resnet: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = saved({"net": resnet.state_dict(), "epoch": 3}, tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [NewHead(module="fc", classes=3)])
    export_repaired(checkpoint, report.plan, report.target, tmp_path / "o.safetensors", writer="safetensors")
    code = freeze_code(checkpoint, report, ["layer1"], written="o.safetensors")
    found: dict[str, Any] = {}
    exec(code.text, found)
    assert "a.pth" not in code.text and found["model"].fc.out_features == 3
    assert torch.equal(found["model"].layer1[0].conv1.weight, resnet.state_dict()["layer1.0.conv1.weight"])


def test_what_the_architecture_has_beyond_the_file_is_new(
    resnet: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = {f"net.{name}": tensor for name, tensor in resnet.state_dict().items()}
    steps = (Drop(module="net.layer4"), Drop(module="net.fc"), Extract(module="net"))
    found, text = ran(state, steps, ["conv1", "layer1"], tmp_path)
    assert "NEW = ('layer4', 'fc')" in text
    rates = {len(group["params"]): group["lr"] for group in found["optimizer"].param_groups}
    assert rates[17] == 0.001  # 15 of layer4, and the head's weight and bias
    model = found["model"].train()
    assert not model.layer1[0].bn1.training and model.layer4[0].bn1.training and model.bn1.training


def test_a_model_of_ones_own_below_a_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = {f"module.{name}": tensor for name, tensor in trained(Detector()).state_dict().items()}
    own = Detector()
    found, _ = ran(state, (), ["body"], tmp_path, model=own)
    assert torch.equal(own.neck.weight, state["module.neck.weight"])
    assert [p.requires_grad for p in own.body.parameters()] == [False] * 8 and own.neck.weight.requires_grad
    assert not own.train().body[1].training
    assert [len(group["params"]) for group in found["optimizer"].param_groups] == [6]


def test_a_tensor_shared_with_the_frozen_part_is_frozen_whatever_its_first_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = nn.Embedding(5, 4)
            self.mid = nn.Linear(4, 4)
            self.out = nn.Linear(4, 5, bias=False)
            self.out.weight = self.emb.weight

    monkeypatch.chdir(tmp_path)
    found, text = ran(Tied().state_dict(), (), ["out"], tmp_path, model=Tied())
    assert "# emb.weight is the same tensor as out.weight, so it is frozen too." in text
    assert not found["model"].emb.weight.requires_grad
    assert [len(group["params"]) for group in found["optimizer"].param_groups] == [2]


def test_the_vectors_of_a_spectral_norm_stay_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 2))

    monkeypatch.chdir(tmp_path)
    found, _ = ran(build().state_dict(), (), ["0"], tmp_path, model=build())
    model = found["model"].train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model(torch.randn(3, 4)).sum().backward()
    found["optimizer"].step()
    still = {name for name, tensor in model.state_dict().items() if torch.equal(tensor, before[name])}
    assert still == {name for name in before if name.startswith("0.")}


def test_what_cannot_be_loaded_by_plain_lines_is_written_first(resnet: nn.Module, tmp_path: Path) -> None:
    checkpoint = saved(resnet, tmp_path / "a.pth")
    code = freeze_code(checkpoint, plan_surgery(checkpoint, []), ["layer1"])
    assert code.text.startswith("# Write the result first, as written.pth") and "weights_only=False" not in code.text


@pytest.mark.parametrize(
    ("frozen", "factor", "says"),
    [
        (["bdy"], 0.1, "Did you mean body"),
        ([], 0.1, "Nothing is named"),
        (["body", "neck", "classes", "boxes"], 0.1, "nothing would be left to train"),
        (["boxes"], 0.1, "boxes.weight is new, and frozen it would never be trained"),
        (["body"], 0.0, "0 is no factor"),
        (["body"], 1.5, "1.5 is no factor"),
        (["body"], float("nan"), "nan is no factor"),
    ],
)
def test_what_makes_no_sense_is_refused(frozen: list[str], factor: float, says: str, tmp_path: Path) -> None:
    checkpoint = saved(Detector().state_dict(), tmp_path / "a.pth")
    report = plan_surgery(checkpoint, [NewHead(module="boxes", classes=2)])
    with pytest.raises(UsageError, match=says):
        freeze_code(checkpoint, report, frozen, factor=factor)
