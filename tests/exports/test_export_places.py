"""What batch norms contradict is not written for a target of names alone either: another file, a list of keys."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.errors import ExportError
from inspector.exports.export import export_repaired
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

WIDTH, DEPTH = 32, 8


@pytest.fixture(scope="module")
def trained() -> dict[str, torch.Tensor]:
    """Convolutions of one size with norms whose statistics are what went through them."""
    torch.manual_seed(5)
    layers: list[nn.Module] = []
    for i in range(DEPTH):
        norm = nn.BatchNorm2d(WIDTH, momentum=None)
        norm.weight.data, norm.bias.data = 0.5 + torch.rand(WIDTH), 0.6 * torch.randn(WIDTH)
        layers += [nn.Conv2d(WIDTH if i else 3, WIDTH, 3, padding=1, bias=False), norm, nn.ReLU()]
    net = nn.Sequential(*layers).train()
    with torch.no_grad():
        for _ in range(8):
            net(torch.randn(8, 3, 16, 16))
    return net.state_dict()


def exported(state, tmp_path):
    torch.save(state, tmp_path / "file.pth")
    checkpoint = open_checkpoint(tmp_path / "file.pth")
    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape), dtype="float32") for n, t in state.items())
    target = Target(label="names", kind=TargetKind.FILE, tensors=tensors)
    plan = diagnose(checkpoint, target).plan
    return export_repaired(checkpoint, plan, target, tmp_path / "out.safetensors", writer="safetensors")


def test_places_are_proved_of_names_alone(trained, tmp_path):
    report = exported(trained, tmp_path)
    (places,) = [proof for proof in report.verification.proofs if proof.id == "places"]
    assert places.passed


def test_two_exchanged_kernels_are_not_written(trained, tmp_path):
    first, second = "6.weight", "15.weight"
    with pytest.raises(ExportError, match="batch norms contradict 2 tensors"):
        exported(trained | {first: trained[second], second: trained[first]}, tmp_path)
    assert not (tmp_path / "out.safetensors").exists()
