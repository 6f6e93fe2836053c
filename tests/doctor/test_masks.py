"""Masks that are no bool: named by what the function takes, tried out as bool; what is none of that keeps its cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.doctor.report import Diagnosis
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net, forward_written

ONES = torch.tensor([[1, 1, 0, 0]])


def diagnosed(model: nn.Module, *args: Any) -> Diagnosis | None:
    return trace_model(model, args, label="net", modes=False).diagnosis


@pytest.mark.parametrize(
    ("expression", "kind", "code"),
    [
        ("x.masked_fill(1 - m.ones, 0.0)", "int64", "m.ones == 0"),
        ("x.masked_fill(m.ones.float(), 0.0)", "float32", "m.ones.float().bool()"),
        ("x.masked_fill(~m.ones, 0.0)", "int64", "m.ones == 0"),
        ("torch.masked_fill(x, m.ones, 0.0)", "int64", "m.ones.bool()"),
        ("torch.where(m.ones, x, 0.0)", "int64", "m.ones.bool()"),
        ("torch.where(1.0 - m.ones, x, 0.0)", "float32", "m.ones == 0"),
        ("x.masked_select(m.ones)", "int64", "m.ones.bool()"),
        ("x[m.ones[0].float().expand(3, 4)]", "float32", "m.ones[0].float().expand(3, 4).bool()"),
    ],
)
def test_a_mask_of_numbers_is_named_and_tried(tmp_path: Path, expression: str, kind: str, code: str) -> None:
    model = Net(forward_written(tmp_path, expression))
    model.register_buffer("ones", ONES)
    said = diagnosed(model, torch.rand(3, 4))
    assert said is not None and said.cause == "mask-type", said
    assert f"received {kind}" in said.says and said.code == code
    assert said.tried == ("the mask as bool: runs through",)


def test_a_bool_mask_is_none() -> None:
    model = Net(lambda m, x: x.masked_fill(ONES.bool(), 0.0))
    assert diagnosed(model, torch.rand(3, 4)) is None


def test_broken_positions_are_no_mask() -> None:
    said = diagnosed(Net(lambda m, x: x[torch.tensor([0.0, 2.0])]), torch.rand(3, 4))
    assert said is not None and said.cause == "index-type"


def test_other_types_that_meet_are_still_two_types() -> None:
    said = diagnosed(Net(lambda m, x: x @ torch.ones(4, 4, dtype=torch.float64)), torch.rand(3, 4))
    assert said is not None and said.cause == "type"
