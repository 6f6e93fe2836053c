"""Weights that no pass uses: told with their line; quiet for experts, auxiliary heads, alternatives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from inspector.doctor.trace import trace_model
from inspector.findings import Finding, Severity


def unused(model: nn.Module, *args: Any, training: bool = False) -> list[Finding]:
    trace = trace_model(model, args, label="net", modes=False, training=training)
    assert trace.failure is None
    return [finding for finding in trace.findings if finding.id == "never-used"]


class Called(nn.Module):
    """fc2 is called in the place of fc3."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 4)
        self.fc3 = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(7))
        self.heads = nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 3)])

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.fc2(self.fc1(x)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("training", [False, True])
def test_a_layer_a_parameter_and_a_list_that_nothing_uses(training: bool) -> None:
    found = unused(nn.Sequential(Called()), torch.rand(2, 4), training=training)
    assert {f.subjects[0]: dict(f.evidence)["weights"] for f in found} == {"0.fc3": 20, "0.scale": 7, "0.heads": 25}
    layer = next(f for f in found if f.subjects == ("0.fc3",))
    assert all(f.severity is (Severity.WARNING if f is layer else Severity.NOTICE) for f in found)
    assert layer.says.startswith("0.fc2 is called a second time (test_unused.py, line ")
    assert "self.fc3 = nn.Linear(4, 4)" in layer.says and "20 weights" in layer.says


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.experts[1](x)  # type: ignore[no-any-return]


class Auxiliary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main, self.aux, self.other = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 2)
        self.bias, self.deep = nn.Parameter(torch.zeros(2)), False

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return self.main(x) + self.aux(x)  # type: ignore[no-any-return]
        return self.other(x) + self.bias if self.deep else self.main(x)  # type: ignore[no-any-return]


class ByName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer0, self.layer1 = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self, "layer" + "0")(x)  # type: ignore[no-any-return]


class Generator(nn.Module):
    """Another method uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)  # type: ignore[no-any-return]

    def generate(self, z: Tensor) -> Tensor:
        return self.decoder(z)  # type: ignore[no-any-return]


class Outside(nn.Module):
    """Its parent uses its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.pick = Generator(), 0

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) @ self.inner.decoder.weight.t()  # type: ignore[no-any-return]


class Detached(nn.Module):
    """Values that are read past every operator."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.scale = nn.Linear(4, 4), nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x) * self.scale.item()  # type: ignore[no-any-return]


@pytest.mark.parametrize("build", [Experts, Auxiliary, ByName, Generator, Outside, Detached])
@pytest.mark.parametrize("training", [False, True])
def test_alternatives_are_quiet(build: type[nn.Module], training: bool) -> None:
    assert unused(build(), torch.rand(2, 4), training=training) == []


def test_layers_of_torch_itself_are_quiet() -> None:
    attention = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 2)
    assert unused(attention, torch.rand(2, 3, 8)) == []
    assert unused(nn.LSTM(4, 4, 2, bidirectional=True, proj_size=2), torch.rand(2, 3, 4)) == []
    assert unused(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), torch.rand(2, 4)) == []


def test_an_auxiliary_head_of_torchvision_is_quiet() -> None:
    assert unused(models.googlenet(weights=None, init_weights=False, aux_logits=True), torch.rand(1, 3, 64, 64)) == []


def test_a_head_under_a_name_that_the_forward_does_not_know() -> None:
    model = models.resnet18(weights=None)
    model.classifier = nn.Linear(512, 3)
    (found,) = unused(model, torch.rand(1, 3, 32, 32))
    assert found.subjects == ("classifier",) and "no method mentions it" in found.says
