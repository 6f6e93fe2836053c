"""A class that refuses a state dict without versions gets one: torchvision's MNASNets, out of a safetensors file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from inspector.architectures.recognise import recognise
from inspector.architectures.targets import target_of_candidate
from inspector.exports.export import export_repaired
from inspector.keys.apply import load_repaired
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


@pytest.mark.parametrize("prefix", ["", "module."])
def test_an_mnasnet_without_versions(tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = torchvision.models.mnasnet0_5(num_classes=7).eval()
    bare = {prefix + name: tensor.clone() for name, tensor in model.state_dict().items()}
    fresh = torchvision.models.mnasnet0_5(num_classes=7)
    with pytest.raises(ValueError, match="version"):
        fresh.load_state_dict(dict(model.state_dict()))  # what torchvision says of any plain dict
    save_file(bare, tmp_path / "net.safetensors")
    checkpoint = open_checkpoint(tmp_path / "net.safetensors")
    best = recognise(checkpoint).best
    assert best is not None
    target = target_of_candidate(best)
    plan = diagnose(checkpoint, target).plan
    assert plan is not None and plan.complete
    loaded = load_repaired(checkpoint, plan, best.spec)
    x = torch.randn(1, 3, 64, 64)
    assert torch.equal(loaded(x), model(x))

    report = export_repaired(checkpoint, plan, target, tmp_path / "fixed.pth")
    assert report.verification.holds
    fresh.load_state_dict(torch.load(tmp_path / "fixed.pth", weights_only=True))

    monkeypatch.chdir(tmp_path)
    again = torchvision.models.mnasnet0_5(num_classes=7).eval()
    exec(python_code(plan, file_name="net.safetensors"), {"model": again})
    assert torch.equal(again(x), model(x))


def test_others_need_none(file_of, target_of) -> None:  # type: ignore[no-untyped-def]
    names = {"conv.weight": (8, 3, 3, 3)}
    code = python_code(diagnose(file_of(names), target_of(names)).plan, file_name="net.pth")
    assert "_metadata" not in code and "collections" not in code
