"""Lengths and directions of a weight norm, and directions that are zero."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from inspector.findings import Severity
from inspector.health.checks.weight_norm import CHECK
from tests.health.trainings import findings, one


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.utils.weight_norm(nn.Linear(8, 8)),
        parametrizations.weight_norm(nn.Conv1d(8, 8, 3)),
        parametrizations.weight_norm(nn.ConvTranspose1d(8, 4, 3), dim=1),
        nn.utils.weight_norm(nn.Linear(4, 4), dim=None),
    )


def test_both_kinds_of_weight_norm_are_told(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, _model().state_dict(), CHECK)
    assert found.id == "weight-norm-not-folded"
    kept = ("1.parametrizations.weight.original0", "2.parametrizations.weight.original0")
    assert found.subjects == ("0.weight_g", *kept, "3.weight_g")


@pytest.mark.parametrize(
    ("name", "where", "count"),
    [
        ("0.weight_v", (slice(3, 5),), 2),
        ("1.parametrizations.weight.original1", (6,), 1),
        ("2.parametrizations.weight.original1", (slice(None), 2), 1),
        ("3.weight_v", (slice(None),), 1),
    ],
)
def test_a_direction_of_zeros_is_an_error_as_torch_makes_nan_of_it(
    name: str, where: tuple[int | slice, ...], count: int, tmp_path: Path
) -> None:
    model = _model()
    state = model.state_dict()
    state[name][where] = 0
    model.load_state_dict(state)
    place = int(name[0])
    assert torch.isnan(model[place](torch.randn(2, 8 if place < 3 else 4, *((5,) if place in (1, 2) else ())))).any()
    found = one(findings(tmp_path, state, CHECK), "weight-norm-without-direction")
    assert found.severity is Severity.ERROR and dict(found.evidence)["directions"] == count
    assert "dead-outputs" not in {f.id for f in findings(tmp_path, state)}


def test_lengths_and_single_numbers_of_zero_are_no_error(tmp_path: Path) -> None:
    state = _model().state_dict()
    state["0.weight_g"][3] = 0
    state["0.weight_v"][5, :7] = 0
    assert [f.id for f in findings(tmp_path, state, CHECK)] == ["weight-norm-not-folded"]
