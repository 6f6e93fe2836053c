"""Causes that name what a stranger had to look for: the buffer, the transposed weight, the hook, the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.doctor.report import Diagnosis, Trace
from inspector.doctor.trace import trace_model
from inspector.findings import Finding, Severity
from inspector.units import with_article
from tests.doctor.made_modules import Net, forward_written


def traced(model: nn.Module, *args: Any, **options: Any) -> Trace:
    torch.manual_seed(0)
    return trace_model(model, args, label="net", **options)


def diagnosed(model: nn.Module, *args: Any, **options: Any) -> Diagnosis:
    found = traced(model, *args, modes=False, **options).diagnosis
    assert found is not None
    return found


def found(trace: Trace, kind: str) -> list[Finding]:
    assert trace.failure is None
    return [finding for finding in trace.findings if finding.id == kind]


SLOPE = "torch.autograd.grad(m.fc(x).sum(), x, create_graph=True)[0]"


@pytest.mark.parametrize("training", [True, False])
def test_a_forward_that_differentiates_by_its_input(tmp_path: Path, training: bool) -> None:
    model = Net(forward_written(tmp_path, SLOPE), fc=nn.Linear(4, 4))
    said = diagnosed(model, torch.rand(3, 4), training=training)
    assert said.cause == "needs-gradient" and said.code == "x = x.requires_grad_()" and "runs through" in said.tried[0]
    assert ("training mode" in said.fix) is not training


def test_a_forward_that_differentiates_by_its_weights_needs_training_alone(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, SLOPE.replace("), x,", "), m.fc.weight,")), fc=nn.Linear(4, 4))
    said = diagnosed(model, torch.rand(3, 4))
    assert said.cause == "needs-gradient" and "recorded no gradients" in said.says
    assert traced(model, torch.rand(3, 4), training=True, modes=False).failure is None


def test_a_weight_that_linear_transposes_again(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "F.linear(m.fc(x), m.table.weight.t())"), fc=nn.Linear(4, 4))
    model.table = nn.Embedding(9, 4)
    said = diagnosed(model, torch.rand(3, 4))
    assert said.fix == "Take out .t()." and "F.linear(m.fc(x), m.table.weight)" in said.code and said.tried


def test_a_weight_of_another_width_is_not_turned(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "F.linear(m.fc(x), m.table.weight.t())"), fc=nn.Linear(4, 5))
    model.table = nn.Embedding(9, 4)
    said = diagnosed(model, torch.rand(3, 4))
    assert said.cause == "linear-features" and "Make both" in said.fix


@pytest.mark.parametrize(("dtype", "named"), [(torch.float64, True), (torch.int64, False)])
def test_a_buffer_of_float64_is_named_behind_its_views(dtype: torch.dtype, named: bool) -> None:
    model = Net(lambda m, x: m.bank @ x)
    model.register_buffer("bank", torch.ones(5, 4).to(dtype))
    said = diagnosed(model, torch.rand(2, 4, 3))
    assert said.cause == "type" and ("The buffer bank is float64" in said.says) is named
    assert bool(said.tried) is named


def test_a_key_that_is_a_module_without_the_others_hook() -> None:
    taps: dict[str, Tensor] = {}

    def forward(m: Any, x: Tensor) -> Tensor:
        x = m.relu2(m.relu1(x))
        return taps["relu1"] + taps["relu2"]

    model = Net(forward, relu1=nn.ReLU(), relu2=nn.ReLU())
    model.relu1.register_forward_hook(lambda module, args, out: taps.update(relu1=out))
    said = diagnosed(model, torch.rand(3, 4))
    assert said.cause == "no-such-key" and "meant" not in said.fix
    assert "relu1 has a forward hook, relu2 has none" in said.fix


def test_a_key_that_is_no_module_is_still_asked_back() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        kept = {"scores": x}
        return kept["score"]

    assert diagnosed(Net(forward), torch.rand(3, 4)).fix == "Is scores meant?"


@pytest.mark.parametrize(
    "expression", ["m.fc(x).softmax(0)", "m.fc(x) - m.fc(x).mean(0)", "m.fc(x) / m.fc(x).norm(dim=0)"]
)
def test_what_goes_over_the_batch_is_named_with_its_line(tmp_path: Path, expression: str) -> None:
    model = Net(forward_written(tmp_path, expression), fc=nn.Linear(4, 4))
    (finding,) = found(traced(model, torch.rand(3, 4)), "samples-mixed")
    assert "(written.py, line 4: return" in finding.says and "goes over dimension 0" in finding.says


def test_what_goes_over_another_dimension_is_quiet(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "m.fc(x).softmax(-1)"), fc=nn.Linear(4, 4))
    assert found(traced(model, torch.rand(3, 4)), "samples-mixed") == []


class Attends(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.scale * (x @ x.mT), -1) @ x


@pytest.mark.parametrize(("scale", "count"), [(1.0, 1), (1 / 256, 0)])
def test_logits_far_apart_ask_for_the_scale(scale: float, count: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 20, 256).repeat(1, 2, 1)  # each row twice: no probability is above a half
    trace = traced(nn.Sequential(Attends(scale), nn.Linear(256, 3)), x, modes=False)
    assert len([f for f in found(trace, "saturated") if "1/sqrt(d)" in f.remedy]) == count


def test_crossed_samples_are_a_warning_in_a_loss_alone() -> None:
    x = torch.rand(6, 4)
    loss = Net(lambda m, x: ((m.fc(x) - x[:, 0].clone()) ** 2).mean(), fc=nn.Linear(4, 1))
    assert [f.severity for f in found(traced(loss, x), "samples-crossed")] == [Severity.WARNING]
    pairs = Net(lambda m, x: m.fc(x) - x[:, 0].clone(), fc=nn.Linear(4, 1))
    assert [f.severity for f in found(traced(pairs, x), "samples-crossed")] == [Severity.NOTICE]


def test_an_index_that_counts_from_one() -> None:
    model = Net(lambda m, i: m.table(i), table=nn.Embedding(12, 3))
    assert "The least index is 1" in diagnosed(model, torch.tensor([12, 1, 7])).says
    assert "least" not in diagnosed(model, torch.tensor([12, 0, 7])).says
    rows = Net(lambda m, i: torch.ones(5, 2)[i])
    assert "The least index is 1" in diagnosed(rows, torch.tensor([5, 1])).says
    assert "least" not in diagnosed(rows, torch.tensor([5, 0])).says


def test_articles() -> None:
    assert [*map(with_article, ("EncoderOutput", "tuple", "int"))] == ["an EncoderOutput", "a tuple", "an int"]
