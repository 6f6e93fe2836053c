"""Moments that contradict the weight they belong to, or each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks.moments_lost import CHECK
from tests.health.trainings import Run, findings

WEIGHT, BIAS = 5, 6  # fc.weight (16, 16) and fc.bias


def _saved(*, trained: bool = True) -> dict[str, Any]:
    """A run whose fc is no initialiser's any more."""
    saved = Run().step(5).saved()
    if trained:
        saved["model"]["fc.weight"] += torch.linspace(-1, 3, 256).view(16, 16)
        saved["model"]["fc.bias"] += 1
    return saved


def _state(saved: dict[str, Any]) -> dict[int, dict[str, torch.Tensor]]:
    found: dict[int, dict[str, torch.Tensor]] = saved["optimizer"]["state"]
    return found


def test_the_state_of_a_healthy_run_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, _saved(), CHECK) == ()


def test_moments_of_zeros_beside_a_trained_weight_are_a_warning(tmp_path: Path) -> None:
    saved = _saved()
    for field in ("exp_avg", "exp_avg_sq"):
        _state(saved)[WEIGHT][field].zero_()
    found = [f for f in findings(tmp_path, saved) if f.id in ("optimizer-state-lost", "parameter-without-gradient")]
    assert [(f.id, f.severity, f.subjects) for f in found] == [
        ("optimizer-state-lost", Severity.WARNING, ("fc.weight",))
    ]


@pytest.mark.parametrize(("key", "name"), [(WEIGHT, "fc.weight"), (BIAS, "fc.bias")])
def test_a_state_that_is_missing_is_a_notice(tmp_path: Path, key: int, name: str) -> None:
    saved = _saved()
    del _state(saved)[key]
    found = [f for f in findings(tmp_path, saved) if f.id in ("optimizer-state-lost", "parameter-without-gradient")]
    assert [(f.id, f.severity, f.subjects) for f in found] == [("optimizer-state-lost", Severity.NOTICE, (name,))]


def test_weights_as_initialised_and_whole_modules_are_left_to_the_other_check(tmp_path: Path) -> None:
    fresh = _saved(trained=False)
    torch.manual_seed(1)
    fresh["model"]["fc.weight"] = torch.nn.Linear(16, 16).weight.data
    whole = _saved()
    for field in ("exp_avg", "exp_avg_sq"):
        _state(fresh)[WEIGHT][field].zero_()
        _state(whole)[WEIGHT][field].zero_()
        _state(whole)[BIAS][field].zero_()
    for saved, count in ((fresh, 1), (whole, 2)):
        found = findings(tmp_path, saved)
        assert [len(f.subjects) for f in found if f.id == "parameter-without-gradient"] == [count]
        assert [f for f in found if f.id == "optimizer-state-lost"] == []


@pytest.mark.parametrize(("field", "severity"), [("exp_avg_sq", Severity.WARNING), ("exp_avg", Severity.NOTICE)])
def test_moments_that_contradict_each_other(tmp_path: Path, field: str, severity: Severity) -> None:
    saved = _saved()
    _state(saved)[WEIGHT][field].zero_()
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity, found.subjects) == ("moments-contradict", severity, ("fc.weight",))


def test_squares_of_gradients_too_small_for_float32_are_no_contradiction(tmp_path: Path) -> None:
    saved = _saved()
    _state(saved)[WEIGHT]["exp_avg_sq"].zero_()
    _state(saved)[WEIGHT]["exp_avg"].fill_(1e-24)
    assert findings(tmp_path, saved, CHECK) == ()


def test_squares_that_half_precision_made_zero_in_places_are_counted(tmp_path: Path) -> None:
    """A state that went through float16 to save disk."""
    for optimizer, squares in (("Adam", "exp_avg_sq"), ("RMSprop", "square_avg")):
        saved = Run(optimizer, frozen=["emb.weight"]).step(5).saved()
        assert findings(tmp_path, saved, CHECK) == ()
        state = _state(saved)
        for entry in state.values():
            entry[squares] *= 1e-4
            entry[squares] = entry[squares].half().float()
        first = "exp_avg" if optimizer == "Adam" else "momentum_buffer"
        least = 1e-15 if optimizer == "Adam" else 1e-8
        lost = {k: int(((e[squares] == 0) & (e[first].abs() > least)).sum()) for k, e in state.items()}
        (found,) = findings(tmp_path, saved, CHECK)
        assert (found.id, found.severity) == ("moments-contradict", Severity.WARNING)
        assert (
            dict(found.evidence)["numbers"]
            == sum(n for k, n in lost.items() if n >= 8 or not state[k][squares].any())
            > 0
        )
        # Their gradients came, so that nothing is said of rows and parameters without any.
        assert not [f for f in findings(tmp_path, saved) if f.id in ("parameter-without-gradient",)]
