"""What a stranger found wrong in the doctor's answers, each by its symptom."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.doctor.report import Trace
from inspector.doctor.trace import trace_model
from tests.doctor.made_modules import Net


def _cause(trace: Trace) -> tuple[str, str, str]:
    assert trace.diagnosis is not None
    return trace.diagnosis.cause, trace.diagnosis.says, trace.diagnosis.fix


def test_positions_that_begin_at_one() -> None:
    model = Net(lambda m, x: m.e(x) + m.p(torch.arange(9) + 1), e=nn.Embedding(50, 8), p=nn.Embedding(9, 8))
    cause, says, fix = _cause(trace_model(model, (torch.zeros(1, 9, dtype=torch.int64),), label="m"))
    assert cause == "position-table" and "from 1 to 9" in says and "from 0" in fix


def test_axes_that_the_forward_moved_are_not_the_inputs_fault() -> None:
    model = Net(lambda m, x: m.c(x.permute(0, 2, 3, 1)), c=nn.Conv2d(3, 8, 3))
    cause, says, fix = _cause(trace_model(model, (torch.zeros(1, 3, 32, 32),), label="m"))
    assert cause == "channels-last" and "the input is" not in says and "leave out what moved them" in fix


def test_a_view_that_no_minus_one_can_save() -> None:
    model = Net(lambda m, x: m.qkv(x).view(1, 6, 3, 5, 6), qkv=nn.Linear(32, 96))
    _, _, fix = _cause(trace_model(model, (torch.zeros(1, 6, 32),), label="m"))
    assert "lets torch work out" not in fix


@pytest.mark.parametrize("side", [1, 4])
def test_batch_statistics_of_one_value_are_the_cause_though_larger_pictures_run(side: int) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4, padding=1), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(2))
    net.eval()(torch.zeros(2, 3, side, side))
    cause, _, _ = _cause(trace_model(net, (torch.zeros(1, 3, side, side),), label="m", training=True))
    assert cause == "batch-norm-of-one"
