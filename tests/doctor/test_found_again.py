"""What a second stranger found: sick passes that ran clean, and causes told wrong, each by its symptom."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.cli.main import run
from inspector.doctor.frames import without_folders
from inspector.doctor.own_layers import named_plain_tensors, plain_tensors
from inspector.doctor.report import Diagnosis, Sureness, Trace
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net


class Loss(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function, self.fc = function, nn.Linear(6, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.function(self.fc(x), y)  # type: ignore[no-any-return]


def diagnosed(model: nn.Module, *args: Tensor) -> Diagnosis:
    trace = trace_model(model, args, label="m")
    assert trace.diagnosis is not None
    return trace.diagnosis


def found(trace: Trace) -> dict[str, str]:
    return {finding.id: finding.says for finding in trace.findings}


@pytest.mark.parametrize("layer", [nn.Conv2d(16, 4, 1), nn.BatchNorm2d(16), nn.ConvTranspose2d(16, 4, 2)])
def test_cat_without_a_dimension_joins_the_batch(layer: nn.Module) -> None:
    model = Net(lambda m, x: m.mix(torch.cat([m.a(x), m.b(x)])), a=nn.Conv2d(3, 8, 1), b=nn.Conv2d(3, 8, 1), mix=layer)
    said = diagnosed(model, torch.rand(2, 3, 8, 8))
    assert (said.cause, said.sureness) == ("cat-dimension", Sureness.CERTAIN)
    assert "in dimension 1 they make 16" in said.says and said.code == "torch.cat([...], dim=1)"


def test_a_layer_that_two_branches_share_is_not_the_pictures_size() -> None:
    model = Net(
        lambda m, x: m.p(m.a(x).flatten(1)) + m.p(m.b(x).flatten(1)),
        a=nn.Conv2d(3, 8, 3, 2), b=nn.Conv2d(3, 8, 3), p=nn.Linear(8 * 15 * 15, 4),
    )  # fmt: skip
    said = diagnosed(model, torch.rand(1, 3, 32, 32))
    assert said.cause == "shared-layer" and "1,800" in said.says and "7,200" in said.says


@pytest.mark.parametrize(
    ("function", "y", "cause", "code"),
    [
        (functional.cross_entropy, torch.zeros(4, 1, dtype=torch.int64), "target-shape", "y = y.squeeze(1)"),
        (functional.cross_entropy, torch.tensor([1, 2, 3, 3]), "target-class", "y = y - 1"),
        (functional.cross_entropy, torch.tensor([0, 2, 9, 1]), "target-class", ""),
        (functional.cross_entropy, torch.zeros(4), "target-type", "y = y.long()"),
        (
            functional.cross_entropy,
            torch.zeros(4, 3, dtype=torch.int64),
            "target-shape",
            "y = y.argmax(1)  # or y.float()",
        ),
        (nn.CrossEntropyLoss(), torch.zeros(5, dtype=torch.int64), "target-shape", ""),
        (
            functional.binary_cross_entropy_with_logits,
            torch.zeros(4, 3, dtype=torch.int64),
            "target-type",
            "y = y.float()",
        ),
        (functional.binary_cross_entropy_with_logits, torch.zeros(12), "target-shape", "y = y.view_as(answers)"),
    ],
)
def test_targets_that_a_loss_does_not_take(function: Any, y: Tensor, cause: str, code: str) -> None:
    said = diagnosed(Loss(function), torch.rand(4, 6), y)
    assert (said.cause, said.code) == (cause, code)


def test_classes_that_stand_last_beside_a_sequence_of_targets() -> None:
    said = diagnosed(Loss(functional.cross_entropy), torch.rand(4, 7, 6), torch.zeros(4, 7, dtype=torch.int64))
    assert said.cause == "target-shape" and said.code == "loss(answers.movedim(-1, 1), y)"


def test_a_mask_of_keys_and_a_gate_of_channels_are_put_where_they_belong() -> None:
    scores = Net(lambda m, x: m.q(x)[:, None].expand(4, 4, 11, 11).masked_fill(x[..., 0] > 9, 0.0), q=nn.Linear(3, 11))
    assert diagnosed(scores, torch.rand(4, 11, 3)).code.endswith("[:, None, None, :]")
    gate = Net(lambda m, x: m.c(x) * m.c(x).mean((2, 3)), c=nn.Conv2d(3, 5, 1))
    assert diagnosed(gate, torch.rand(2, 3, 7, 9)).code.endswith("[:, :, None, None]")


def test_transposed_convolutions_that_come_back_smaller() -> None:
    model = Net(lambda m, x: m.up(m.down(x)) - x, down=nn.Conv2d(1, 4, 3, 2, 1), up=nn.ConvTranspose2d(4, 1, 3, 2, 1))
    said = diagnosed(model, torch.rand(1, 1, 28, 28))
    assert "output_padding=1 in up" in said.fix and said.tried == ("output_padding=1 in up: runs through",)


def test_a_double_buffer_is_named_and_not_the_layer_that_met_it() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("pe", torch.zeros(5, 6, dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.pe  # type: ignore[operator, no-any-return]

    said = diagnosed(nn.Sequential(Positions(), nn.Linear(6, 2)), torch.rand(2, 5, 6))
    assert said.cause == "type" and said.fix.startswith("0.pe is float64") and said.code == "0.pe = 0.pe.float()"


def test_plain_tensors_are_named_where_they_lie_and_what_is_registered_is_none() -> None:
    inner = Net(lambda m, x: x + m.pe, pe=torch.zeros(5, 6, dtype=torch.float64), fc=nn.Linear(6, 6))
    inner.register_buffer("kept", torch.zeros(1))
    inner.later = [torch.zeros(1)]
    model = nn.Sequential(inner, nn.Linear(6, 2))
    assert [name for name, _ in named_plain_tensors(model)] == ["0.pe"]
    assert list(plain_tensors(model).values()) == [inner.pe]
    assert [name for name, _ in named_plain_tensors(inner)] == ["pe"]
    said = diagnosed(model, torch.rand(2, 5, 6))
    assert said.fix.startswith("0.pe is float64") and said.code == "0.pe = 0.pe.float()"
    # Of two nobody knows which it was.
    inner.other = torch.zeros(1, dtype=torch.float64)
    assert "is float64" not in diagnosed(model, torch.rand(2, 5, 6)).fix


def test_a_name_that_init_forgot_to_keep() -> None:
    class Forgot(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            norm = nn.BatchNorm2d(3)
            self.conv = nn.Sequential(norm)

        def forward(self, x: Tensor) -> Tensor:
            return self.norm(x)  # type: ignore[operator, no-any-return]

    assert "without self" in diagnosed(Forgot(), torch.rand(1, 3, 4, 4)).says


@pytest.mark.parametrize(
    "text",
    [
        "Found no NVIDIA driver on your system. Please check ... https://www.nvidia.com/Download/index.aspx",
        "Torch not compiled with CUDA enabled",
        "No CUDA GPUs are available",
    ],
)
def test_no_gpu_is_told_as_such(text: str) -> None:
    def fail(module: nn.Module, x: Tensor) -> Tensor:
        raise RuntimeError(text)

    assert diagnosed(Net(fail), torch.rand(1)).cause == "no-gpu"
    assert without_folders(text) == text and without_folders("in /home/me/net.py:3") == "in net.py:3"


def test_what_was_changed_in_place_breaks_the_backward_pass_and_is_named() -> None:
    def forward(module: Any, x: Tensor) -> Tensor:
        gate = torch.sigmoid(module.g(x))
        other = gate * x
        gate += 1
        return other  # type: ignore[no-any-return]

    trace = trace_model(Net(forward, g=nn.Linear(4, 4)), (torch.rand(2, 4),), label="m", training=True)
    assert "gate += 1" in found(trace)["backward-fails"]
    model = nn.Linear(4, 4)
    assert not found(trace_model(model, (torch.rand(2, 4),), label="m", training=True))
    assert model.weight.grad is None


@pytest.mark.parametrize(
    ("model", "size", "mixes", "where"),
    [
        (nn.Sequential(nn.Linear(6, 4), nn.Softmax(dim=0)), (3, 6), True, "1 (Softmax)"),
        (nn.Sequential(nn.Linear(6, 4), nn.Softmax(dim=1)), (3, 6), False, ""),
        (nn.Sequential(nn.BatchNorm1d(6, track_running_stats=False)), (3, 6), True, "0 (BatchNorm1d)"),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), (2, 3, 8, 8), False, ""),
        (Net(lambda m, x: m.r(x)[0][:, -1], r=nn.GRU(6, 4)), (3, 5, 6), True, "r (GRU)"),
        (Net(lambda m, x: m.r(x)[0][:, -1], r=nn.GRU(6, 4, batch_first=True)), (3, 5, 6), False, ""),
        (nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16)), (3, 5, 8), True, "self_attn"),
        (nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), (3, 5, 8), False, ""),
    ],
)
def test_a_sample_whose_answer_depends_on_the_others(
    model: nn.Module, size: tuple[int, ...], mixes: bool, where: str
) -> None:
    said = found(trace_model(model, (torch.rand(size),), label="m"))
    assert ("samples-mixed" in said) == mixes
    assert where in said.get("samples-mixed", "")


def test_a_batch_that_is_written_into_the_code() -> None:
    model = Net(lambda m, x: m.f(x.view(2, 6)), f=nn.Linear(6, 3))
    assert "not with 4" in found(trace_model(model, (torch.rand(2, 6),), label="m"))["batch-is-fixed"]


def test_the_operator_that_made_the_first_nan_is_named_with_its_line() -> None:
    model = Net(lambda m, x: m.gate((x - x.mean(0)) / x.std(0)), gate=nn.Linear(4, 4))
    trace = trace_model(model, (torch.rand(1, 4),), label="m")
    assert (
        "std in the model itself" in found(trace)["output-not-finite"]
        and "x.std(0)" in found(trace)["output-not-finite"]
    )
    assert trace.first_bad == "" and trace.modes is not None and trace.modes.difference is None


def test_three_names_are_three_rows(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)\n"
        "    def forward(self, x):\n        return self.q(x) + self.k(x)\n\n\nclass Bad(nn.Module):\n"
        "    def __init__(self):\n        self.q = nn.Linear(4, 4)\n"
    )
    assert run(["trace", f"code:{tmp_path}/net.py:Net", "--input-size", "4"]) == 0
    first = capsys.readouterr().out
    assert "q (Linear)" in first and "k (Linear)" in first
    assert run(["trace", f"code:{tmp_path}/net.py:Net", "--input-size", "4"]) == 0
    assert capsys.readouterr().out == first
    assert run(["trace", f"code:{tmp_path}/net.py:Bad", "--input-size", "4"]) == 1
    out = capsys.readouterr().out
    assert "super().__init__()" in out and "net.py, line 14: def __init__(self):" in out


def test_the_shortcut_that_lacks_the_stride_is_named() -> None:
    parts = {"y": nn.Conv2d(3, 4, 3, 2, 1), "short": nn.Conv2d(3, 4, 1)}
    said = diagnosed(Net(lambda m, x: m.y(x) + m.short(x), **parts), torch.rand(1, 3, 8, 8))
    assert said.fix == "Give short the same stride." and said.code == "nn.Conv2d(3, 4, 1, stride=2)"


def test_a_model_of_two_types_is_told_as_such() -> None:
    said = diagnosed(nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1).half()), torch.rand(1, 3, 4, 4))
    assert said.cause == "type" and "float16 and float32" in said.fix and said.code == "model = model.float()"


def test_a_row_that_is_masked_throughout_is_told_as_such() -> None:
    model = Net(lambda m, x: m.f(x.masked_fill(x < 9, float("-inf")).softmax(-1)), f=nn.Linear(4, 4))
    trace = trace_model(model, (torch.rand(2, 4),), label="m")
    bad = next(f for f in trace.findings if f.id == "output-not-finite")
    assert "softmax in the model itself" in bad.says and "masked throughout" in bad.remedy


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (
            lambda m, x: m.b(m.a(x).detach()),
            "No gradient reaches 2 of 4 parameters that ran: a.weight, a.bias: ",
        ),
        (lambda m, x: m.b(m.a(x)).argmax(-1).float(), "No output carries a gradient, though 4 parameters"),
        (lambda m, x: m.b(m.a(x)) * 0.0, ""),
        (lambda m, x: m.b(m.a(x)), ""),
    ],
)
def test_a_graph_that_is_cut_in_training(forward: Any, says: str) -> None:
    model = Net(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    said = found(trace_model(model, (torch.rand(2, 4),), label="m", training=True))
    assert ("no-gradient" in said) == bool(says) and said.get("no-gradient", "").startswith(says)
    frozen = found(trace_model(model.requires_grad_(False), (torch.rand(2, 4),), label="m", training=True))
    assert "frozen" in frozen["no-gradient"]


@pytest.mark.parametrize(
    ("forward", "out", "size", "lost"),
    [
        (lambda m, x: m.r(x)[0][-1], 4, (8, 5, 6), True),
        (lambda m, x: m.r(x)[0][:, -1], 4, (8, 5, 6), False),
        (lambda m, x: m.r(x)[0].flatten(0, 1), 4, (8, 5, 6), False),
        (lambda m, x: m.r(x)[0].transpose(0, 1), 4, (8, 5, 6), False),
        (lambda m, x: m.r(x)[0].reshape(-1, 16), 4, (8, 5, 6), True),
    ],
)
def test_samples_that_come_out_are_those_that_went_in(
    forward: Any, out: int, size: tuple[int, ...], lost: bool
) -> None:
    model = Net(forward, r=nn.GRU(6, out, batch_first=True))
    assert ("batch-lost" in found(trace_model(model, (torch.rand(size),), label="m"))) == lost


def test_attention_without_a_batch_is_healthy() -> None:
    model = Net(lambda m, x: m.a(x, x, x)[0], a=nn.MultiheadAttention(8, 2))
    assert "samples-mixed" not in found(trace_model(model, (torch.rand(5, 8),), label="m"))


def test_one_layer_called_again_is_no_row_of_neighbours(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n\n\ndef again():\n    layer = nn.Linear(4, 4)\n"
        "    return nn.Sequential(*[layer] * 3)\n\n\ndef three():\n"
        "    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(3)])\n"
    )
    run(["trace", f"code:{tmp_path}/net.py:again", "--input-size", "4"])
    assert "3 calls" in capsys.readouterr().out
    run(["trace", f"code:{tmp_path}/net.py:three", "--input-size", "4"])
    assert "x3" in capsys.readouterr().out


def test_time_first_that_ends_in_its_last_step_is_healthy() -> None:
    model = Net(lambda m, x: m.r(x)[0][-1], r=nn.GRU(6, 4))
    assert "batch-lost" not in found(trace_model(model, (torch.rand(9, 3, 6),), label="m"))


@pytest.mark.parametrize(("target", "crossed"), [((8,), True), ((8, 1), False)])
def test_answers_in_a_column_beside_targets_in_a_row(target: tuple[int, ...], crossed: bool) -> None:
    model = Net(lambda m, x: (m.f(x) - torch.zeros(target)).pow(2).mean(), f=nn.Linear(4, 1))
    said = found(trace_model(model, (torch.rand(8, 4),), label="m"))
    assert ("samples-crossed" in said) == crossed
    assert not crossed or "makes 8x8 of 8x1 and 8" in said["samples-crossed"]
