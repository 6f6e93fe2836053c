"""Networks that run and are wrong: each by its symptom, with the quiet twin beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.doctor.loss_pairs import find_mismatch
from inspector.doctor.report import End, Trace
from inspector.doctor.trace import trace_model
from inspector.findings import Severity
from tests.doctor.made_modules import Net, forward_written

_HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"


def written(folder: Path, body: str) -> Any:
    """A module of a file, as a person's is."""
    place = folder / "own_net.py"
    place.write_text(_HEAD + body)
    spec = importlib.util.spec_from_file_location("own_net", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def traced(model: nn.Module, x: Tensor, **options: Any) -> Trace:
    torch.manual_seed(0)
    return trace_model(model, (x,), label="net", **options)


def told(trace: Trace, kind: str) -> str:
    """Severity, sentence and remedy of the one finding of that kind; "" for none."""
    found = [f for f in trace.findings if f.id == kind]
    assert len(found) < 2
    return f"{found[0].severity.value}: {found[0].says} {found[0].remedy}" if found else ""


@pytest.mark.parametrize(
    ("fill", "warned"),
    [
        ("nn.ModuleList([layer] * 3)", True),
        ("nn.ModuleList([layer for _ in range(3)])", True),
        ("nn.ModuleList([layer] * 3)  # shared on purpose", False),
        ("nn.ModuleList(nn.Linear(4, 4) for _ in range(3))", None),
    ],
)
def test_one_layer_several_times_in_a_list(tmp_path: Path, fill: str, warned: bool | None) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        layer = nn.Linear(4, 4)\n"
        f"        self.layers = {fill}\n    def forward(self, x):\n        for one in self.layers:\n"
        "            x = one(x)\n        return x\n"
    )
    says = told(traced(written(tmp_path, body).Net(), torch.randn(2, 4)), "same-object")
    if warned is None:
        assert not says
        return
    assert says.startswith("warning" if warned else "notice")
    assert "layers.0 to layers.2 are one and the same object (Linear, 20 weights in all, not 60)" in says
    assert "own_net.py, line 8" in says


def test_layers_whose_units_are_all_alike() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
    assert not told(traced(model, torch.randn(3, 6)), "units-alike")
    for layer in (model[0], model[2]):
        nn.init.constant_(layer.weight, 0.1)  # type: ignore[arg-type]
    says = told(traced(model, torch.randn(3, 6)), "units-alike")
    assert says.startswith("warning: 2 Linear layers have one single weight value, 0.1: 0, 2")
    nn.init.normal_(model[0].weight)  # type: ignore[arg-type]
    nn.init.zeros_(model[2].weight)  # type: ignore[arg-type]
    assert not told(traced(model, torch.randn(3, 6)), "units-alike")


def test_sound_and_pictures_that_come_unscaled() -> None:
    wave = torch.randint(-20000, 20000, (2, 1, 400)).float()
    says = told(traced(nn.Conv1d(1, 4, 9), wave), "input-range")
    assert says.startswith("warning") and "16-bit sound" in says and "32768" in says
    picture = torch.randint(0, 256, (1, 3, 16, 16)).float()
    assert "Divide by 255" in told(traced(nn.Conv2d(3, 4, 3), picture), "input-range")
    assert not told(traced(nn.Conv2d(3, 4, 3), picture / 255), "input-range")
    normed = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    assert told(traced(normed, picture), "input-range").startswith("notice")
    assert not told(traced(nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3)), picture), "input-range")


def test_a_column_of_milliseconds() -> None:
    rows = torch.randn(20, 5)
    assert not told(traced(nn.Linear(5, 2), rows), "input-range")
    rows[:, 3] = 1.7e12
    says = told(traced(nn.Linear(5, 2), rows), "input-range")
    assert "column 3 reaches 1.7e+12 (milliseconds since 1970?)" in says


def test_saturated_places_are_one_finding() -> None:
    net = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Sigmoid()) for _ in range(4)), nn.Linear(64, 2))
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=90.0)
    says = told(traced(net, torch.randn(8, 64)), "saturated")
    assert "in 4 modules (0.1 to 3.1)" in says


_TRAIN = "def train(model, x, y):\n    {line}\n"


@pytest.mark.parametrize(
    ("end", "line", "says"),
    [
        ("softmax", "loss = nn.CrossEntropyLoss()", "The model ends in softmax"),
        ("sigmoid", "loss = F.binary_cross_entropy_with_logits(model(x), y)", "applies sigmoid itself"),
        ("linear", "loss = F.nll_loss(model(x), y)", "NLLLoss takes log-probabilities"),
        ("linear", "loss = nn.BCELoss()", "BCELoss takes probabilities"),
        ("linear", "loss = F.cross_entropy(F.softmax(model(x), 1), y)", "softmax goes into CrossEntropyLoss"),
        ("linear", "loss = nn.CrossEntropyLoss()", ""),
        ("log_softmax", "loss = nn.NLLLoss()", ""),
        ("log_softmax", "loss = nn.CrossEntropyLoss()", ""),
        ("sigmoid", "loss = nn.BCELoss()", ""),
        ("softmax", "loss = F.nll_loss(torch.log(model(x)), y)", ""),
        ("softmax", "loss = F.mse_loss(model(x), y)", ""),
        ("", "loss = nn.NLLLoss()", ""),
    ],
)
def test_the_loss_of_the_file_beside_the_end_of_the_model(end: str, line: str, says: str) -> None:
    found = list(find_mismatch(_TRAIN.format(line=line), "net.py", (End(function=end, path="head"),)))
    assert len(found) == bool(says)
    assert not says or (says in found[0].says and "net.py, line 2" in found[0].says)


def test_of_several_ends_one_that_fits_is_enough() -> None:
    ends = (End(function="softmax", path="a"), End(function="linear", path="b"))
    assert not list(find_mismatch(_TRAIN.format(line="loss = nn.CrossEntropyLoss()"), "net.py", ends))


def test_a_loss_inside_forward_that_is_given_a_softmax(tmp_path: Path) -> None:
    target = torch.tensor([0, 2])
    model = Net(forward_written(tmp_path, "F.cross_entropy(m.fc(x).softmax(1), m.y)"), fc=nn.Linear(4, 3), y=target)
    assert "cross_entropy (written.py, line 4" in told(traced(model, torch.randn(2, 4)), "loss-mismatch")
    sound = Net(forward_written(tmp_path, "F.cross_entropy(m.fc(x), m.y)"), fc=nn.Linear(4, 3), y=target)
    assert not told(traced(sound, torch.randn(2, 4)), "loss-mismatch")


_VIEWS = "class Net(nn.Module):\n    def forward(self, x):\n        {lines}\n"


@pytest.mark.parametrize(
    ("lines", "shape", "remedy"),
    [
        ("b, c, h, w = x.size(); return x.view(b, h * w, c)", (2, 6, 3, 5), "x.flatten(2).transpose(1, 2)"),
        # Equal sizes: by the names alone.
        ("b, c, h, w = x.shape; return x.view(b, h * w, c)", (2, 9, 3, 3), "x.flatten(2).transpose(1, 2)"),
        ("b, t, d = x.shape; return x.view(b, 4, t, d // 4)", (2, 7, 8), "x.view(b, t, 4, d // 4).transpose(1, 2)"),
        ("return x.reshape(x.size(0), x.size(2), 8)", (2, 4, 7, 2), "x.transpose(1, 2).reshape("),
        ("b, c, h, w = x.size(); return x.view(b, c, h * w)", (2, 6, 3, 5), ""),
        ("b, c, h, w = x.size(); return x.permute(0, 2, 3, 1).reshape(b, h * w, c)", (2, 6, 3, 5), ""),
        ("b, t, d = x.shape; return x.view(b, t, 4, d // 4).transpose(1, 2)", (2, 7, 8), ""),
        ("b, t, d = x.shape; return x.view(b * t, d)", (2, 7, 8), ""),
        ("q, k = x.shape; return x.view(k, q) if False else x.view(q // 2, 2, k)", (4, 6), ""),
    ],
)
def test_a_view_named_after_dimensions_that_are_elsewhere(
    tmp_path: Path, lines: str, shape: tuple[int, ...], remedy: str
) -> None:
    model = written(tmp_path, _VIEWS.format(lines=lines)).Net()
    says = told(traced(model, torch.randn(shape), modes=False), "reshape-for-permute")
    assert (remedy in says) if remedy else not says


@pytest.mark.parametrize(
    ("expression", "x", "says"),
    [
        ("x.sum(1).pow(-0.5)", torch.tensor([[1.0, 1.0], [0.0, 0.0]]), "x.sum(1) of 2 holds a 0 (at 1)"),
        ("torch.log(x - 2)", torch.ones(2, 3), "x - 2 of 2x3 is below 0 throughout, as -1"),
        ("x / x.sum(1, keepdim=True)", torch.zeros(2, 3), "x.sum(1, keepdim=True) of 2x1 is 0 throughout"),
        ("torch.sqrt(x)", torch.tensor([4.0, -0.25]), "x of 2 holds a value below 0 (at 1), as -0.25"),
        ("torch.acos(x)", torch.tensor([0.5, 1.001]), "x of 2 holds a value beyond -1 to 1 (at 1), as 1.001"),
        ("torch.exp(x)", torch.tensor([1.0, 100.0]), "x of 2 holds a value above 89 (at 1), as 100"),
    ],
)
def test_the_values_behind_the_first_that_is_not_finite(tmp_path: Path, expression: str, x: Tensor, says: str) -> None:
    model = Net(forward_written(tmp_path, f"m.fc(({expression}).reshape(2, -1))"), fc=nn.LazyLinear(2))
    model(torch.ones_like(x))
    assert says in told(traced(model, x), "output-not-finite")


def test_an_input_that_is_not_finite_itself() -> None:
    x = torch.ones(2, 3)
    x[1, 2] = torch.nan
    assert "The input 0 holds 1 values" in told(traced(nn.Linear(3, 2), x), "output-not-finite")


def test_the_product_of_a_parameter_is_none(tmp_path: Path) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.pos = nn.Parameter(torch.randn(1, 4)) * 0.02\n        self.fc = nn.Linear(4, 2)\n"
        "    def forward(self, x):\n        return self.fc(x + self.pos)\n"
    )
    says = told(traced(written(tmp_path, body).Net(), torch.randn(2, 4)), "tensor-in-plain-attribute")
    assert "The product of a Parameter is no Parameter: self.pos = nn.Parameter(torch.randn(1, 4) * 0.02)" in says


def test_the_decorator_that_turns_gradients_off_is_named(tmp_path: Path) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 2)\n"
        "    @torch.no_grad()\n    def items(self, x):\n        return self.b(x)\n"
        "    def forward(self, x):\n        return self.a(x) * self.items(x)\n"
    )
    says = told(traced(written(tmp_path, body).Net(), torch.randn(2, 4), training=True), "no-gradient")
    assert "own_net.py, line 8: @torch.no_grad()" in says


@pytest.mark.parametrize("detached", [False, True])
def test_values_that_leave_torch_and_come_back(tmp_path: Path, detached: bool) -> None:
    way = "x.detach()" if detached else "m.a(x)"
    model = Net(forward_written(tmp_path, f"m.a(x) + torch.tensor({way}.tolist())"), a=nn.Linear(4, 4))
    says = told(traced(model, torch.randn(2, 4), training=True), "no-gradient")
    assert ("tolist and tensor (written.py, line 4" in says) is not detached


def test_time_first_where_the_source_says_that_the_batch_is() -> None:
    class Tagger(nn.Module):
        """x: (batch, seq, features)"""

        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.fc = nn.GRU(5, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.rnn(x)[0])  # type: ignore[no-any-return]

    says = told(traced(Tagger(), torch.randn(4, 6, 5)), "samples-mixed")
    assert says.startswith("warning") and "self.rnn, self.fc = (nn.GRU(5, 8, batch_first=True)" in says
    assert Severity.WARNING.value in says


def test_a_network_that_starts_at_zero_throughout() -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
    nn.init.zeros_(net[2].weight)  # type: ignore[arg-type]
    assert not told(traced(net, torch.randn(3, 6)), "units-alike")
    nn.init.zeros_(net[0].weight)  # type: ignore[arg-type]
    says = told(traced(net, torch.randn(3, 6)), "units-alike")
    assert "2 of 2 layers have nothing but zeros for weights: 0, 2" in says


@pytest.mark.parametrize("dim", [0, 1])
def test_frames_that_are_stacked_before_the_batch(tmp_path: Path, dim: int) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(4, 3)\n    def forward(self, x):\n"
        f"        seq = torch.stack([self.fc(x[:, t]) for t in range(x.size(1))], dim={dim})\n"
        "        return seq.mean(1)\n"
    )
    says = told(traced(written(tmp_path, body).Net(), torch.randn(2, 5, 4)), "batch-lost")
    assert says.startswith("warning") and "own_net.py, line 9" in says if dim == 0 else not says
