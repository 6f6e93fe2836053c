"""Gradients: not finite, fading in a stack, of one's own Function, of forwards that differentiate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.doctor.trace import trace_model
from inspector.findings import Finding, Severity
from tests.doctor.made_modules import Net, forward_written


def found(model: nn.Module, x: Tensor, kind: str) -> list[Finding]:
    trace = trace_model(model, (x,), label="net", training=True, modes=False)
    assert trace.failure is None
    return [finding for finding in trace.findings if finding.id == kind]


def of_ones(forward: Any) -> Net:
    """fc gives x itself."""
    fc = nn.Linear(4, 4, bias=False)
    nn.init.eye_(fc.weight)
    return Net(forward, fc=fc)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("m.fc(x).sqrt()", "sqrt (written.py, line 4: return m.fc(x).sqrt()) is taken at 0, for 3 of 8 values"),
        ("m.fc(x) ** 0.5", "is taken at 0, for 3 of 8 values"),
        ("torch.where(x > 0, m.fc(x).log(), 0.0)", "log (written.py, line 4"),
        ("torch.where(x > 0, x / m.fc(x), 0.0)", "div (written.py, line 4"),
        ("torch.where(x > 0, 1 / m.fc(x), 0.0)", "divides by 0, for 3 of 8 values"),
        ("torch.acos(m.fc(x))", "is taken at 1 or -1, for 1 of 8 values"),
        ("torch.rsqrt(m.fc(x)).clamp(max=3.0)", "rsqrt (written.py, line 4"),
    ],
)
def test_the_operator_that_makes_a_gradient_infinite_is_named(tmp_path: Path, expression: str, says: str) -> None:
    x = torch.tensor([[0.0, 0.5, 0.25, 0.5], [0.0, 0.0, 1.0, 0.75]])
    (finding,) = found(of_ones(forward_written(tmp_path, expression)), x, "gradient-not-finite")
    assert says in finding.says and "The gradient of fc.weight is" in finding.says
    assert finding.severity is Severity.ERROR and finding.subjects == ("fc",) and finding.remedy


@pytest.mark.parametrize(
    "expression",
    [
        "(m.fc(x) + 1e-12).sqrt()",
        "m.fc(x).norm(dim=1)",  # torch takes 0 for its slope at 0
        "torch.atan2(m.fc(x), m.fc(x))",
        "torch.sqrt(torch.relu(m.fc(x) - 0.1))",  # relu hands nothing back where it gave 0
        "torch.where(x > 0, m.fc(x).clamp_min(1e-6).log(), 0.0)",
        "m.fc(x) + x.sqrt()",
    ],
)
def test_finite_gradients_are_quiet(tmp_path: Path, expression: str) -> None:
    x = torch.tensor([[0.0, 0.5, 0.25, 0.5], [0.0, 0.0, 1.0, 0.75]])
    assert found(of_ones(forward_written(tmp_path, expression)), x, "gradient-not-finite") == []


def stack(act: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    layers = [one for _ in range(24) for one in (nn.Linear(8, 8), act())]
    return nn.Sequential(nn.Sequential(*layers), nn.Linear(8, 1))


def test_a_gradient_that_vanishes_names_the_stack() -> None:
    (finding,) = found(stack(nn.Sigmoid), torch.randn(4, 8), "gradient-vanished")
    assert finding.subjects == ("0",) and "0.0.weight" in finding.says and "0.46.weight" in finding.says
    assert "over 24 weights" in finding.says and finding.severity is Severity.NOTICE


def test_a_gradient_that_stays_alive_or_starts_at_zero_is_quiet() -> None:
    assert found(stack(nn.Identity), torch.randn(4, 8), "gradient-vanished") == []
    held = stack(nn.Identity)
    nn.init.zeros_(held[0][46].weight)  # type: ignore[index]
    assert found(held, torch.randn(4, 8), "gradient-vanished") == []


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor, alpha: float) -> Tensor:
        return w * alpha

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 2.0


class Right(Scaled):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 2.0, None


def test_a_backward_with_too_few_gradients_is_named() -> None:
    (finding,) = found(
        Net(lambda m, x: Scaled.apply(m.fc(x), 2.0), fc=nn.Linear(4, 4)), torch.randn(2, 4), "backward-fails"
    )
    assert "Scaled.backward (test_gradients.py, line" in finding.says and "return grad * 2.0)" in finding.says
    assert "returns 1 gradient for the 2 inputs of its forward (w, alpha)" in finding.says
    assert "return ..., None." in finding.remedy


def test_a_backward_with_all_gradients_is_quiet() -> None:
    assert not found(
        Net(lambda m, x: Right.apply(m.fc(x), 2.0), fc=nn.Linear(4, 4)), torch.randn(2, 4), "backward-fails"
    )


def test_a_bias_that_a_forward_differentiates_away_is_no_alarm() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(m.end(m.fc(x).tanh()).sum(), x, create_graph=True)[0]

    model = Net(forward, fc=nn.Linear(4, 4), end=nn.Linear(4, 1))
    (finding,) = found(model, torch.randn(2, 4), "no-gradient")
    assert (
        finding.severity is Severity.INFO and "end.bias" in finding.says and "takes gradients itself" in finding.remedy
    )


def test_a_graph_that_the_forward_throws_away_is_still_told() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(m.fc(x).tanh().sum(), x)[0]

    (finding,) = found(Net(forward, fc=nn.Linear(4, 4)), torch.randn(2, 4), "no-gradient")
    assert finding.severity is Severity.WARNING and "create_graph=True" in finding.remedy
