"""Findings that name the operator and its line: what draws, what cuts the graph, what reshapes, what kills a branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.doctor.report import Trace
from inspector.doctor.trace import trace_model
from inspector.findings import Finding, Severity
from tests.doctor.made_modules import Net, forward_written


def traced(model: nn.Module, x: Tensor, **options: Any) -> Trace:
    torch.manual_seed(0)
    return trace_model(model, (x,), label="net", **options)


def found(trace: Trace, kind: str) -> list[Finding]:
    assert trace.failure is None
    return [finding for finding in trace.findings if finding.id == kind]


@pytest.mark.parametrize(
    ("expression", "function", "remedy"),
    [
        ("F.dropout(m.fc(x), 0.5)", "dropout", "training=self.training"),
        ("m.fc(x) + torch.randn_like(x)", "randn_like", "if self.training"),
        ("m.fc(x) * torch.bernoulli(torch.full_like(x, 0.5))", "bernoulli", "Sample in training alone"),
        ("torch.multinomial(m.fc(x).softmax(1), 1) * 1.0", "multinomial", "Sample in training alone"),
        ("F.gumbel_softmax(m.fc(x))", "gumbel_softmax", "if self.training"),
        ("F.rrelu(m.fc(x), training=True)", "rrelu", "if self.training"),
    ],
)
def test_what_draws_random_numbers_is_named(tmp_path: Path, expression: str, function: str, remedy: str) -> None:
    model = Net(forward_written(tmp_path, expression), fc=nn.Linear(8, 8))
    (finding,) = found(traced(model, torch.randn(4, 8)), "random-in-evaluation")
    assert f"{function} in the model itself (written.py, line 4: return" in finding.says and remedy in finding.remedy


def test_what_draws_in_training_alone_is_quiet(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "F.dropout(m.fc(x), training=m.training)"), fc=nn.Linear(8, 8))
    assert found(traced(model, torch.randn(4, 8)), "random-in-evaluation") == []


def test_a_model_that_changes_its_input_in_place_is_not_random() -> None:
    model, x = Net(lambda m, x: m.fc(x.mul_(2.0)), fc=nn.Linear(8, 8)), torch.ones(4, 8)
    trace = traced(model, x)
    assert trace.findings == () and bool((x == 1).all())


class Counter(nn.Module):
    """Assigns its buffer anew at each pass."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        return x * self.count


def test_a_buffer_that_is_assigned_anew_is_given_back() -> None:
    model = Counter()
    before = model.count
    trace = traced(model, torch.ones(2, 3))
    assert model.count is before and float(before) == 0.0
    assert found(trace, "random-in-evaluation") == []


def test_randomness_that_torch_does_not_draw(tmp_path: Path) -> None:
    import numpy as np

    generator = np.random.default_rng(0)
    model = Net(lambda m, x: m.fc(x) * float(generator.random()), fc=nn.Linear(8, 8))
    (finding,) = found(traced(model, torch.randn(4, 8)), "random-in-evaluation")
    assert "no function of torch draws" in finding.says and "NumPy" in finding.remedy


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("m.head(m.enc(x).detach())", "detach"),
        ("m.head(m.enc(x).data)", ".data"),
        ("m.head(torch.from_numpy(m.enc(x).detach().numpy()))", "detach"),
        ("m.head(torch.tensor(m.enc(x).tolist()))", "tolist"),
        ("m.head(torch.no_grad()(m.enc)(x))", "no_grad"),
        ("m.head(m.enc(x).argmax(1, keepdim=True).expand(-1, 8) * 1.0)", "argmax"),
    ],
)
def test_where_the_graph_is_cut(tmp_path: Path, expression: str, name: str) -> None:
    model = Net(forward_written(tmp_path, expression), enc=nn.Linear(8, 8), head=nn.Linear(8, 2))
    (finding,) = found(traced(model, torch.randn(4, 8), training=True, modes=False), "no-gradient")
    assert f": {name} (written.py, line 4: return" in finding.says and "cuts the graph there" in finding.says
    assert "Something cuts" not in finding.remedy


def test_a_comparison_beside_what_cuts_is_not_named(tmp_path: Path) -> None:
    """Comparisons never have a gradient, and nobody expects one."""
    written = forward_written(tmp_path, "m.head(m.enc(x).detach() * (m.enc(x) > 0))")
    model = Net(written, enc=nn.Linear(8, 8), head=nn.Linear(8, 2))
    (finding,) = found(traced(model, torch.randn(4, 8), training=True, modes=False), "no-gradient")
    assert ": detach (written.py" in finding.says and "gt" not in finding.says


@pytest.mark.parametrize(
    "expression", ["m.head(m.enc(x))", "m.head(m.enc(x)) + 0 * m.enc(x).detach().mean()", "m.head(m.enc(x) * (x > 0))"]
)
def test_what_is_detached_beside_the_graph_is_quiet(tmp_path: Path, expression: str) -> None:
    model = Net(forward_written(tmp_path, expression), enc=nn.Linear(8, 8), head=nn.Linear(8, 2))
    assert found(traced(model, torch.randn(4, 8), training=True, modes=False), "no-gradient") == []


def test_a_reshape_that_moves_the_batch_is_named_where_samples_mix(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "m.rnn(m.conv(x).reshape(9, -1, 6))[0].transpose(0, 1)"),
                conv=nn.Conv1d(3, 6, 1), rnn=nn.GRU(6, 4))  # fmt: skip
    for batch in (2, 1):
        trace = traced(model, torch.randn(batch, 3, 9))
        (finding,) = found(trace, "samples-mixed")
        assert "written.py, line 4" in finding.says and finding.remedy.endswith("permute(2, 0, 1).")
        assert f"makes 9x{batch}x6 of {batch}x6x9" in finding.says and finding.severity is Severity.WARNING
        assert found(trace, "reshape-for-permute") == []


def test_a_reshape_inside_a_sample_is_told_by_itself(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "m.fc(m.conv(x).view(2, 9, 6))"), conv=nn.Conv1d(3, 6, 1), fc=nn.Linear(6, 2))
    (finding,) = found(traced(model, torch.randn(2, 3, 9)), "reshape-for-permute")
    assert "makes 2x9x6 of 2x6x9" in finding.says and finding.remedy.endswith("permute(0, 2, 1).")


@pytest.mark.parametrize(
    "expression",
    ["m.conv(x).permute(0, 2, 1)", "m.conv(x).flatten(1)", "m.conv(x).view(2, 3, 2, 9)", "m.conv(x).view(2, 1, 6, 9)",
     "m.conv(x).unsqueeze(1).reshape(2, 6, 1, 9)", "m.conv(x).view(-1, 6, 9)"],
)  # fmt: skip
def test_reshapes_that_keep_the_order_are_quiet(tmp_path: Path, expression: str) -> None:
    model = Net(forward_written(tmp_path, expression), conv=nn.Conv1d(3, 6, 1))
    assert found(traced(model, torch.randn(2, 3, 9)), "reshape-for-permute") == []


def test_views_inside_a_package_are_quiet(tmp_path: Path) -> None:
    """Its authors tried them; heads of attention split 5x2x8 into 5x8x2."""
    folder = tmp_path / "site-packages" / "some"
    folder.mkdir(parents=True)
    for place, count in ((folder, 0), (tmp_path, 1)):
        model = Net(forward_written(place, "m.fc(x).view(5, 8, 2)"), fc=nn.Linear(8, 8))
        assert len(found(traced(model, torch.randn(5, 2, 8), modes=False), "reshape-for-permute")) == count
    attention = Net(lambda m, x: m.attn(x, x, x)[0], attn=nn.MultiheadAttention(8, 4))
    assert found(traced(attention, torch.randn(5, 2, 8)), "reshape-for-permute") == []


def dead(bias: float) -> nn.Sequential:
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    for layer in model[::2]:
        nn.init.constant_(layer.bias, bias)
    return model


def test_relus_that_a_bias_kills_are_one_warning_with_its_reason() -> None:
    trace = traced(dead(-5.0), torch.randn(16, 8), modes=False)
    (finding,) = trace.findings
    assert finding.id == "output-all-zeros" and finding.severity is Severity.WARNING
    assert "its bias is -5 on average" in finding.says and "Behind it 2 (Linear) gives -5 everywhere" in finding.says
    assert "does not follow the input" in finding.says and "0.bias near 0" in finding.remedy
    assert traced(dead(0.1), torch.randn(16, 8), modes=False).findings == ()


def test_a_functional_relu_that_lets_nothing_through(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "m.b(F.relu(m.a(x)))"), a=nn.Linear(8, 64), b=nn.Linear(64, 4))
    nn.init.constant_(model.a.bias, -9.0)
    (finding,) = traced(model, torch.randn(16, 8), modes=False).findings
    assert finding.id == "output-all-zeros" and "relu in the model itself (written.py, line 4" in finding.says
    assert "its bias is -9 on average" in finding.says


def test_a_constant_gate_of_an_answer_that_follows_its_input_is_no_warning() -> None:
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(64, 64, 1), nn.Sigmoid())
    nn.init.zeros_(gate[1].bias)
    model = Net(lambda m, x: m.conv(x) * m.gate(0 * x), conv=nn.Conv2d(64, 64, 1), gate=gate)
    severities = {f.id: f.severity for f in traced(model, torch.randn(2, 64, 4, 4), modes=False).findings}
    assert severities == {"output-constant": Severity.INFO, "output-all-zeros": Severity.NOTICE}
    # Where nothing goes past it, it is one.
    alone = Net(lambda m, x: m.gate(0 * x), gate=gate)
    assert Severity.WARNING in {f.severity for f in traced(alone, torch.randn(2, 64, 4, 4), modes=False).findings}


def test_one_output_of_several_that_is_constant_is_no_warning() -> None:
    model = Net(lambda m, x: {"boxes": m.fc(x), "scores": torch.full((8, 8), 0.5)}, fc=nn.Linear(8, 8))
    assert traced(model, torch.randn(8, 8), modes=False).findings == ()


class Last(nn.Module):
    def __init__(self, *, tags: bool, batch_first: bool) -> None:
        super().__init__()
        self.lstm, self.fc, self.tags = nn.LSTM(6, 8, batch_first=batch_first), nn.Linear(8, 3), tags

    def forward(self, x: Tensor) -> Tensor:
        out = self.lstm(x)[0]
        return self.fc(out if self.tags else out[:, -1])  # type: ignore[no-any-return]


def test_a_recurrent_layer_that_takes_the_batch_for_time() -> None:
    """One answer for each entry of dimension 0, and nothing left of dimension 1: that one was time."""
    x = torch.randn(5, 9, 6)
    (finding,) = found(traced(Last(tags=False, batch_first=False), x), "samples-mixed")
    assert finding.severity is Severity.WARNING and "batch_first=True" in finding.remedy
    (meant,) = found(traced(Last(tags=True, batch_first=False), x), "samples-mixed")
    assert meant.severity is Severity.NOTICE
    assert found(traced(Last(tags=False, batch_first=True), x), "samples-mixed") == []
