"""Lines that are offered are tried as they stand, in the names of the forward; causes that lie before what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net, forward_written
from tests.doctor.test_silent_faults import written


def diagnosed(model: nn.Module, *args: Tensor) -> Diagnosis:
    trace = trace_model(model, args, label="net")
    assert trace.diagnosis is not None
    return trace.diagnosis


def made(folder: Path, init: str, forward: str) -> Any:
    """A network whose __init__ and forward are given line by line."""
    # A file of its own: Python keeps the lines of one that it has read.
    folder = folder / str(abs(hash((init, forward))))
    folder.mkdir(exist_ok=True)
    body = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    body += "".join(f"        {line}\n" for line in init.splitlines())
    name, *lines = forward.splitlines()
    body += f"    def forward(self, {name}):\n" + "".join(f"        {line}\n" for line in lines)
    return written(folder, body).Net()


_LSTM = "self.embed = nn.Embedding(9, 4)\nself.lstm = nn.LSTM(4, 5, batch_first=True)\n"


def test_the_state_takes_its_type_from_what_the_layer_is_given(tmp_path: Path) -> None:
    init = f"{_LSTM}self.state = (torch.zeros(1, 8, 5), torch.zeros(1, 8, 5))"
    ids = torch.randint(0, 9, (3, 6))
    found = diagnosed(made(tmp_path, init, "ids\ne = self.embed(ids)\nreturn self.lstm(e, self.state)[0]"), ids)
    assert found.code == "self.state = (e.new_zeros(1, e.size(0), 5), e.new_zeros(1, e.size(0), 5))" and found.tried
    # Where the embedding has no name, the ids (whole numbers) are not what a state is made of.
    found = diagnosed(made(tmp_path, init, "ids\nreturn self.lstm(self.embed(ids), self.state)[0]"), ids)
    assert found.code.startswith("self.state = (self.lstm.weight_hh_l0.new_zeros(1, ids.size(0), 5), ") and found.tried


_PACK = "nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)"


def test_packed_sequences_are_unpacked_before_a_linear_layer(tmp_path: Path) -> None:
    init = "self.rnn = nn.GRU(4, 5, batch_first=True)\nself.tag = nn.Linear(5, 2)"
    x, lengths = torch.randn(3, 6, 4), torch.tensor([6, 2, 4])
    found = diagnosed(made(tmp_path, init, f"x, lengths\nout, _ = self.rnn({_PACK})\nreturn self.tag(out)"), x, lengths)
    assert found.code == "out, lengths = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)"
    assert found.tried and "out.data" in found.fix and "stack" not in found.code


def test_of_several_ways_to_join_a_list_that_one_which_runs(tmp_path: Path) -> None:
    init = "self.a = nn.Linear(4, 3)\nself.b = nn.Linear(6, 2)"
    found = diagnosed(made(tmp_path, init, "x\nboth = [self.a(x), self.a(x)]\nreturn self.b(both)"), torch.randn(2, 4))
    assert found.code == "both = torch.cat(both, -1)" and found.tried


@pytest.mark.parametrize(
    ("forward", "code"),
    [
        ("logits, labels\nreturn F.cross_entropy(logits, labels)", "labels = labels.squeeze(1)"),
        ("logits, labels\nreturn F.cross_entropy(logits.flatten(0, 1), labels)", "labels = labels.flatten()"),
    ],
)
def test_a_line_has_the_names_of_the_failing_one_and_runs(tmp_path: Path, forward: str, code: str) -> None:
    flat = "flatten" in code
    logits = torch.randn(4, 3, 5) if flat else torch.randn(4, 5)
    labels = torch.zeros((4, 3) if flat else (4, 1), dtype=torch.int64)
    found = diagnosed(made(tmp_path, "pass", forward), logits, labels)
    assert found.code == code and found.tried == ("that, to the end of the forward: runs through",)


def test_a_line_that_does_not_mend_is_not_printed(tmp_path: Path) -> None:
    """Labels of one column, and of classes beyond the answers': it runs into another failure in the same place."""
    net = made(tmp_path, "pass", "logits, labels\nreturn F.cross_entropy(logits, labels)")
    found = diagnosed(net, torch.randn(4, 5), torch.full((4, 1), 7))
    assert not any("runs through" in one for one in found.tried)


def test_trials_leave_the_forward_as_it_was(tmp_path: Path) -> None:
    net = made(tmp_path, "pass", "logits, labels\nreturn F.cross_entropy(logits, labels)")
    before = type(net).forward.__code__
    diagnosed(net, torch.randn(4, 5), torch.zeros(4, 1, dtype=torch.int64))
    assert type(net).forward.__code__ is before


_POOLED = "self.c = nn.Conv2d(3, 2, 5)\nself.fc = nn.Linear(2 * 4 * 4, 6)"


def test_a_view_that_makes_more_samples_is_the_cause_and_not_the_targets(tmp_path: Path) -> None:
    forward = "x, y\nx = self.c(x)\nx = x.view(-1, 2 * 4 * 4)\nreturn F.cross_entropy(self.fc(x), y)"
    y = torch.zeros(4, dtype=torch.int64)
    found = diagnosed(made(tmp_path, _POOLED, forward), torch.randn(4, 3, 12, 12), y)
    assert found.cause == "batch-reshaped" and found.sureness is Sureness.CERTAIN
    assert "The 4 samples become 16 rows" in found.says and found.change is not None and found.change.line == 11
    assert found.code == "x = x.flatten(1)\nself.fc = nn.Linear(128, 6)  # in __init__" and found.tried
    # With the right pictures nothing fails, and targets that are too few are still told as such.
    net = made(tmp_path, _POOLED, forward)
    assert trace_model(net, (torch.randn(4, 3, 8, 8), y), label="net").failure is None
    found = diagnosed(net, torch.randn(4, 3, 8, 8), y[:3])
    assert found.cause == "target-shape" and found.sureness is Sureness.CERTAIN


def test_frames_as_pictures_and_back_are_no_lost_samples(tmp_path: Path) -> None:
    init = "self.c = nn.Conv2d(3, 2, 4)\nself.fc = nn.Linear(2, 5)"
    forward = "x, y\nb, t = x.shape[:2]\nf = self.c(x.view(b * t, 3, 4, 4)).view(b, t, 2).mean(1)\n"
    forward += "return F.cross_entropy(self.fc(f), y)"
    found = diagnosed(made(tmp_path, init, forward), torch.randn(4, 3, 3, 4, 4), torch.zeros(3, dtype=torch.int64))
    assert found.cause == "target-shape"


_ENCODER = "layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)\nself.enc = nn.TransformerEncoder(layer, 1)"


@pytest.mark.parametrize("size", ["x.size({0})", "x.shape[{0}]"])
def test_the_line_that_makes_a_mask_of_the_batch_is_named_and_mended(tmp_path: Path, size: str) -> None:
    line = "mask = torch.ones({0}, {0}).triu(1).bool()"
    forward = f"x\n{line.format(size.format(0))}\nreturn self.enc(x, mask=mask)"
    found = diagnosed(made(tmp_path, _ENCODER, forward), torch.randn(3, 7, 8))
    assert found.cause == "attention-mask" and "made of the batch (3) and not of the length (7)" in found.says
    assert found.change is not None and found.change.text == line.format(size.format(0))
    assert found.code == line.format(size.format(1)) and found.tried


def test_channels_of_a_sum_come_from_the_layer_before_a_shuffle(tmp_path: Path) -> None:
    init = "self.c = nn.Conv2d(3, 8, 3, padding=1)\nself.s = nn.PixelShuffle(2)"
    forward = "x\nup = F.interpolate(x, scale_factor=2)\nreturn up + self.s(self.c(x))"
    found = diagnosed(made(tmp_path, init, forward), torch.randn(1, 3, 6, 6))
    assert found.code == "nn.Conv2d(3, 12, 3, padding=1)" and found.tried and "nn.Conv2d(2, 3, 1)" in found.fix


def test_a_shortcut_past_layers_still_gets_its_convolution(tmp_path: Path) -> None:
    init = "self.c = nn.Conv2d(3, 8, 3, padding=1)"
    found = diagnosed(made(tmp_path, init, "x\nreturn x + self.c(x)"), torch.randn(1, 3, 6, 6))
    assert found.code == "nn.Conv2d(3, 8, 1)" and found.sureness is Sureness.CERTAIN


def test_binary_cross_entropy_of_logits_is_known(tmp_path: Path) -> None:
    net = Net(forward_written(tmp_path, "m.loss(m.fc(x), x[:, :1].sigmoid())"), fc=nn.Linear(4, 1), loss=nn.BCELoss())
    trace = trace_model(net, (torch.randn(9, 4),), label="net")
    assert trace.diagnosis is not None and trace.diagnosis.cause == "loss-values" and trace.diagnosis.tried
    assert trace.diagnosis.code == "nn.BCEWithLogitsLoss()"
    assert [f.id for f in trace.findings] == ["forward-fails"]


def test_targets_beyond_one_and_values_that_are_not_finite_are_known() -> None:
    net = Net(lambda m, x: functional.binary_cross_entropy(x.sigmoid(), x * 0 + 3))
    assert "reaches from 3 to 3" in diagnosed(net, torch.randn(9, 4)).says
    net = Net(lambda m, x: torch.multinomial(x.log().softmax(1), 1))
    found = diagnosed(net, -torch.rand(2, 4))
    assert found.cause == "values-not-finite" and "8 NaNs" in found.says
