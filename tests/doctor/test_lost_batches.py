"""A batch of one that a squeeze took away, and what never is blamed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net, forward_written


def diagnosed(model: nn.Module, *args: Any) -> Diagnosis:
    found = trace_model(model, args, label="net", modes=False).diagnosis
    assert found is not None
    return found


def two_streams(join: Any) -> nn.Module:
    def forward(net: Any, x: Tensor) -> Tensor:
        a, b = net.a(x).squeeze(), net.b(x).squeeze()
        return join(a, b)  # type: ignore[no-any-return]

    return Net(forward, a=nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1)), b=nn.Conv2d(3, 8, 8))


@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: torch.cat([a, b], dim=1),
        lambda a, b: torch.cat((a, b), 1),
        lambda a, b: torch.stack([a, b], dim=2),
        lambda a, b: torch.softmax(a + b, dim=1),
        lambda a, b: a.mean(1) + b.mean(1),
        lambda a, b: a * a.size(1),
        lambda a, b: a @ b.transpose(0, 1),
    ],
)
def test_a_squeeze_that_takes_a_batch_of_one(join: Any) -> None:
    said = diagnosed(two_streams(join), torch.rand(1, 3, 8, 8))
    assert (said.cause, said.sureness) == ("batch-squeezed", Sureness.CERTAIN)
    assert "8 of 1x8x1x1" in said.says and "input" not in said.says
    assert said.code == "x = x.flatten(1)" and said.tried == ("the same input twice: runs through",)
    # Two samples run through, so nothing is wrong there.
    assert trace_model(two_streams(join), (torch.rand(2, 3, 8, 8),), label="net", modes=False).failure is None


def test_a_squeeze_is_followed_through_later_layers() -> None:
    model = Net(
        lambda m, x: torch.softmax(m.fc(m.conv(x).mean((2, 3)).squeeze()), dim=1), conv=nn.Conv2d(3, 8, 3),
        fc=nn.Linear(8, 5),
    )  # fmt: skip
    said = diagnosed(model, torch.rand(1, 3, 8, 8))
    assert said.cause == "batch-squeezed" and "8 of 1x8" in said.says and "Take the squeeze out" in said.fix


def test_what_two_samples_do_not_mend_is_likely_alone() -> None:
    model = Net(lambda m, x: m.fc(torch.softmax(m.a(x).squeeze(), dim=1)), a=nn.Linear(9, 8), fc=nn.Linear(3, 2))
    said = diagnosed(model, torch.rand(1, 9))
    assert (said.cause, said.sureness) == ("batch-squeezed", Sureness.LIKELY)


def test_a_tensor_that_has_the_dimension_is_never_blamed() -> None:
    model = Net(lambda m, x: torch.cat([m.a(x).sum(1), m.a(x).sum(1)], dim=1), a=nn.Linear(9, 8))
    said = diagnosed(model, torch.rand(2, 9))
    assert said.cause == "no-such-dimension" and "2x9" not in said.says and "2 (made by sum)" in said.says


def test_a_squeeze_of_another_dimension_is_no_cause() -> None:
    model = Net(lambda m, x: torch.softmax(m.a(x).squeeze(1).sum(1), dim=1), a=nn.Linear(9, 8))
    said = diagnosed(model, torch.rand(1, 1, 9))
    assert said.cause == "no-such-dimension"


def lost(model: nn.Module, batch: int) -> list[str]:
    trace = trace_model(model, (torch.rand(batch, 4),), label="net")
    return [finding.says for finding in trace.findings if finding.id == "batch-lost"]


def test_an_answer_without_its_batch_of_one_is_told() -> None:
    squeezed = Net(lambda m, x: m.fc(x).squeeze(), fc=nn.Linear(4, 3))
    (says,) = lost(squeezed, 1)
    assert "one sample gives 3, two give 2x3" in says
    assert lost(squeezed, 2) == [] and lost(nn.Linear(4, 3), 1) == []
    assert lost(Net(lambda m, x: m.fc(x).squeeze(-1), fc=nn.Linear(4, 1)), 1) == []


@pytest.mark.parametrize(
    ("expression", "layer", "written"),
    [
        ("x + m.attn(x, x, x)", nn.MultiheadAttention(8, 2, batch_first=True), "m.attn(x, x, x)[0]"),
        ("m.attn(x) * x", nn.LSTM(8, 8), "m.attn(x)[0]"),
        ("x * m.attn(x)", nn.GRU(8, 8), "m.attn(x)[0]"),
        ("x @ m.attn(x)", nn.RNN(8, 8), "m.attn(x)[0]"),
        ("-m.attn(x)", nn.RNN(8, 8), "m.attn(x)[0]"),
        ("m.attn(x).mean(1)", nn.LSTM(8, 8), "m.attn(x)[0]"),
        ("torch.relu(m.attn(x))", nn.LSTM(8, 8), "m.attn(x)[0]"),
        ("torch.cat([x, m.attn(x)], 1)", nn.LSTM(8, 8), "m.attn(x)[0]"),
        ("m.attn(x)[:, -1]", nn.LSTM(8, 8), "m.attn(x)[0]"),
    ],
)
def test_a_tuple_that_meets_an_operator(tmp_path: Path, expression: str, layer: nn.Module, written: str) -> None:
    said = diagnosed(Net(forward_written(tmp_path, expression), attn=layer), torch.rand(2, 5, 8))
    assert (said.cause, said.sureness, said.code) == ("tuple-handed-on", Sureness.CERTAIN, written)
    assert said.says.startswith("attn (") and "of 2 parts" in said.says


def test_nothing_that_meets_an_operator(tmp_path: Path) -> None:
    class Forgot(nn.Module):
        def forward(self, x: Tensor) -> None:
            x.relu()

    said = diagnosed(Net(forward_written(tmp_path, "x + m.block(x)"), block=Forgot()), torch.rand(2, 8))
    assert said.cause == "gives-none" and "block (Forgot)" in said.says


def test_a_tuple_of_another_line_is_not_blamed() -> None:
    def forward(net: Any, x: Tensor) -> Tensor:
        pair = net.rnn(x)
        text = "a"
        return pair[0] + text  # type: ignore[no-any-return,operator]

    said = diagnosed(Net(forward, rnn=nn.LSTM(8, 8)), torch.rand(2, 5, 8))
    assert said.cause != "tuple-handed-on"
