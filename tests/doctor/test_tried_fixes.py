"""Fixes that are tried out to the end of the forward, and the line that is to be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.doctor.report import Diagnosis
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net, forward_written
from tests.doctor.test_silent_faults import written


def diagnosed(model: nn.Module, *args: Tensor, **options: Any) -> Diagnosis:
    trace = trace_model(model, args, label="net", **options)
    assert trace.diagnosis is not None
    return trace.diagnosis


def test_operands_that_have_changed_places(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, "m.fc(torch.mm(x, m.adj))"), fc=nn.Linear(4, 2), adj=torch.eye(6))
    found = diagnosed(model, torch.randn(6, 4))
    assert found.code == "m.adj @ x" and found.tried and "changed places" in found.fix


@pytest.mark.parametrize(
    ("expression", "width", "code"),
    [
        ("torch.cat([m.c(x), m.c(x).flatten(1)], 1)", 16, "m.c(x).flatten(1)"),
        ("torch.cat([m.c(x).flatten(1)[:1], m.c(x).flatten(1)], 1)", 16, "m.c(x).flatten(1)[:1].expand("),
        ("torch.cat([m.c(x).flatten(1).unsqueeze(0), m.c(x).flatten(1)], 1)", 16, "m.c(x).flatten(1).unsqueeze(0)[-1]"),
    ],
)
def test_what_cat_takes_is_what_runs_to_the_end(tmp_path: Path, expression: str, width: int, code: str) -> None:
    model = Net(forward_written(tmp_path, f"m.fc({expression})"), c=nn.Conv2d(3, 8, 4), fc=nn.Linear(width, 2))
    found = diagnosed(model, torch.randn(2, 3, 4, 4))
    assert found.cause == "cat-of-shapes" and found.code.startswith(code) and found.tried


def test_a_fix_that_fails_later_is_not_told_as_tried(tmp_path: Path) -> None:
    model = Net(
        forward_written(tmp_path, "m.fc(torch.cat([m.c(x), m.c(x).flatten(1)], 1))"),
        c=nn.Conv2d(3, 8, 4),
        fc=nn.Linear(99, 2),
    )
    found = diagnosed(model, torch.randn(2, 3, 4, 4))
    assert not found.tried and "does not take it so" in found.fix


_ENCODER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        self.encoder = nn.TransformerEncoder(layer, 2)
    def forward(self, x):
        return self.encoder(x, src_key_padding_mask=x[..., 0] > 9).mean(1)
"""


@pytest.mark.filterwarnings("ignore")
def test_attention_whose_mask_says_that_the_batch_stands_first(tmp_path: Path) -> None:
    found = diagnosed(written(tmp_path, _ENCODER).Net(), torch.randn(3, 5, 8))
    assert found.cause == "attention-batch" and found.tried
    assert found.code == "layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)"
    assert found.change is not None and found.change.line == 8


def test_features_that_stand_second_before_a_recurrent_layer() -> None:
    model = nn.Sequential(nn.Conv1d(3, 6, 3), nn.GRU(6, 4))
    found = diagnosed(model, torch.randn(2, 3, 12))
    assert found.cause == "sequence-transposed" and "permute(2, 0, 1)" in found.code and found.tried


def test_a_state_for_another_batch_is_mended_where_it_is_made(tmp_path: Path) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.rnn = nn.GRU(3, 4, batch_first=True)\n    def forward(self, seq):\n"
        "        h = torch.zeros(1, 16, 4)\n        return self.rnn(seq, h)[0]\n"
    )
    found = diagnosed(written(tmp_path, body).Net(), torch.randn(2, 5, 3))
    assert found.change is not None and found.change.line == 9 and "h = seq.new_zeros(1, seq.size(0), 4)" in found.code


def test_a_forward_inside_init(tmp_path: Path) -> None:
    body = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(3, 2)\n        def forward(self, x):\n            return self.fc(x)\n"
    )
    found = diagnosed(written(tmp_path, body).Net(), torch.randn(2, 3))
    assert found.cause == "no-forward" and found.change is not None and found.change.line == 8


def test_the_line_that_makes_the_layer_in_a_helper(tmp_path: Path) -> None:
    body = (
        "def block(i, o):\n    return nn.Sequential(\n        nn.Conv2d(i, o, 3),\n        nn.BatchNorm2d(i))\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = block(3, 8)\n"
        "    def forward(self, x):\n        return self.body(x)\n"
    )
    found = diagnosed(written(tmp_path, body).Net(), torch.randn(2, 3, 8, 8))
    assert found.cause == "norm-width" and found.change is not None and found.change.text == "nn.BatchNorm2d(i))"


def test_parts_that_have_changed_places() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 2), nn.Linear(6, 6)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.a(x), self.b(x)

    found = diagnosed(Net(lambda m, x: x - m.two(x)[0], two=Two()), torch.randn(4, 6))
    assert "two gives 4x2 and 4x6: number 1 of them would fit" in found.says


def test_volumes_without_their_channel() -> None:
    found = diagnosed(nn.Sequential(nn.Conv3d(1, 2, 3)), torch.randn(2, 6, 6, 6))
    assert found.cause == "channel-missing" and found.code == "x = x.unsqueeze(1)"


def test_letters_of_an_einsum_in_another_order(tmp_path: Path) -> None:
    model = Net(forward_written(tmp_path, 'torch.einsum("bi,jb->b", m.fc(x), m.fc(x))'), fc=nn.Linear(4, 8))
    found = diagnosed(model, torch.randn(3, 4))
    assert found.code == "torch.einsum('bi,bj->b', ...)" and found.tried
