"""What a stranger found wrong in the bill, each by its symptom."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from inspector import open_checkpoint
from inspector.architectures.recognise import recognise
from inspector.architectures.types import Given
from inspector.cli.main import run
from inspector.flops.count import count_given, count_model_costs
from inspector.flops.own_code import count_code_costs
from inspector.flops.report import CostReport, Coverage

CODE = """
import torch
from torch import nn
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.table = nn.Linear(4, 3), nn.Embedding(10, 3)
    def forward(self, x, t): return self.fc(x) + self.table(t)
def half(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).half()
def double(): return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1)).double()
class Bad(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x): return self.fc(x) * float("nan")
"""


def bill(model: nn.Module, *shape: int) -> CostReport:
    return count_model_costs(model, shape, label="a model", second_opinion=False)


class Made(nn.Module):
    def __init__(self, run: object, **parts: nn.Module) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)  # type: ignore[operator, no-any-return]


def _field(report: CostReport) -> tuple[int, ...] | None:
    return report.modules[0].receptive_field


def test_sparse_products_are_not_counted_as_none() -> None:
    model = Made(lambda m, x: torch.sparse.mm(torch.eye(6).to_sparse(), x))
    report = count_given(model, (Given(name="", shape=(6, 4)),), label="m", values="random")
    coverage = report.coverage("macs")
    assert coverage is not None and coverage.coverage is Coverage.PARTIAL and "sparse" in coverage.why


@pytest.mark.parametrize("moved", [lambda x: torch.roll(x, 5, 3), lambda x: x.flip(3)])
def test_what_moves_places_has_no_receptive_field(moved: object) -> None:
    model = Made(lambda m, x: m.conv(moved(x)) + x, conv=nn.Conv2d(1, 1, 3, padding=1))  # type: ignore[operator]
    assert _field(bill(model, 1, 1, 16, 16)) is None


def test_gates_and_norms_over_places_are_said_not_to_be_counted() -> None:
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 3, 1), nn.Sigmoid())
    gated = bill(Made(lambda m, x: m.conv(x * m.gate(x)), gate=gate, conv=nn.Conv2d(3, 2, 3)), 1, 3, 8, 8)
    normed = bill(nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)), 1, 3, 8, 8)
    for report in (gated, normed):
        state = report.coverage("receptive_field")
        assert state is not None and "by custom" in state.why
    plain = bill(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval(), 1, 3, 8, 8).coverage("receptive_field")
    assert plain is not None and plain.why == ""


def test_a_signal_has_a_receptive_field() -> None:
    layers = [nn.Conv1d(2 if n == 0 else 4, 4, 3, dilation=2**n) for n in range(4)]
    assert _field(bill(nn.Sequential(*layers), 1, 2, 100)) == (31,)
    # Tokens are no signal.
    assert _field(bill(nn.Sequential(nn.Linear(8, 8)), 1, 5, 8)) is None


def test_an_embedding_bag_reads_its_rows_and_not_the_table() -> None:
    report = count_given(
        nn.EmbeddingBag(100_000, 64), (Given(name="", shape=(2, 4), dtype="int64", below=10),), label="m"
    )
    assert report.read_nbytes < 4 * 64 * 8 + 8 * 8 + 200


def test_one_number_for_each_sample_and_the_type_of_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    assert (
        run(["flops", "code:model.py:Steps", "--input", "4", "--input", "t=:int64", "--batch", "5", "--no-thop"]) == 0
    )
    assert "60 (60)" in capsys.readouterr().out
    for name, shape, dtype in (("half", (3, 8, 8), "float16"), ("double", (8,), "float64")):
        report = count_code_costs(f"code:model.py:{name}", shape, second_opinion=False)
        assert report.inputs[0].dtype == dtype
    # A report with NaN in it comes out of the other process as well.
    assert run(["trace", "code:model.py:Bad", "--input-size", "4"]) == 1
    assert "NaN" in capsys.readouterr().out


def test_weights_that_an_exporter_rewrote_make_no_claims(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    buffer = io.BytesIO()
    torch.onnx.export(net, (torch.zeros(1, 3, 8, 8),), buffer, dynamo=False)
    assert onnx.load_from_string(buffer.getvalue())
    checkpoint = open_checkpoint(buffer.getvalue())
    assert checkpoint.weights is not None
    assert recognise(checkpoint, checkpoint.weights).structure is None
