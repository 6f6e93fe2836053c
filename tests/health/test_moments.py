"""Moments that no gradient can have made, and parameters that none has reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.findings import Severity
from inspector.health.checks.moments import CHECK
from tests.health.trainings import Run, copied, findings, one


def _state(saved: dict[str, Any], number: int) -> dict[str, Any]:
    found: dict[str, Any] = saved["optimizer"]["state"][number]
    return found


def test_healthy_moments_have_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path, Run().step(5).saved(), CHECK) == ()


def test_a_negative_second_moment_is_an_error(tmp_path: Path) -> None:
    saved = Run().step(5).saved()
    _state(saved, 5)["exp_avg_sq"][2, 3] = -0.25
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity, found.subjects) == ("moment-negative", Severity.ERROR, ("fc.weight",))
    assert "down to -0.25 in exp_avg_sq" in found.says and ("smallest", -0.25) in found.evidence


@pytest.mark.parametrize(
    ("optimizer", "field"),
    [
        ("Adam", "max_exp_avg_sq"),
        ("Adamax", "exp_inf"),
        ("RMSprop", "square_avg"),
        ("Adagrad", "sum"),
        ("Adadelta", "acc_delta"),
        ("Adafactor", "col_var"),
        ("NAdam", "exp_avg_sq"),
        ("Rprop", "step_size"),
    ],
)
def test_the_squares_of_every_optimizer_are_known(tmp_path: Path, optimizer: str, field: str) -> None:
    saved = Run(optimizer).step(3).saved()
    _state(saved, 5)[field].view(-1)[3] = -1.0
    assert [f.id for f in findings(tmp_path, saved, CHECK)] == ["moment-negative"]


def test_a_negative_first_moment_is_none(tmp_path: Path) -> None:
    saved = Run().step(3).saved()
    _state(saved, 5)["exp_avg"] -= 1
    assert findings(tmp_path, saved, CHECK) == ()


def test_nan_in_a_moment_is_an_error(tmp_path: Path) -> None:
    saved = Run("SGD").step(3).saved()
    _state(saved, 1)["momentum_buffer"][0, 0, 0] = float("nan")
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity) == ("moment-non-finite", Severity.ERROR)
    assert found.says == "SGD in optimizer holds NaN or infinity in momentum_buffer of 1 parameter: conv.weight."


def test_a_step_that_began_anew_beside_old_moments_is_a_warning(tmp_path: Path) -> None:
    saved = Run().step(3).saved()
    for state in saved["optimizer"]["state"].values():
        state["step"].zero_()
    found = one(findings(tmp_path, saved), "optimizer-step-lost")
    assert found.severity is Severity.WARNING
    assert "moments of 9 parameters" in found.says


def test_a_parameter_without_a_gradient_is_named(tmp_path: Path) -> None:
    run = Run()
    run.model.spare = torch.nn.Linear(3, 4)
    run.optimizer.add_param_group({"params": list(run.model.spare.parameters()), "lr": 1e-3})
    saved = run.step(4).saved()
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity) == ("parameter-without-gradient", Severity.NOTICE)
    assert "lists 11 parameters, and 2 of them never had a gradient other than zero in 4 steps" in found.says
    assert ("without state", 2) in found.evidence


def test_a_moment_of_nothing_but_zeros_is_a_parameter_without_a_gradient(tmp_path: Path) -> None:
    saved = Run().step(4).saved()
    _state(saved, 7)["exp_avg_sq"].zero_()
    _state(saved, 7)["exp_avg"].zero_()
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.subjects) == ("parameter-without-gradient", ("head.weight",))
    assert ("moments all zero", 1) in found.evidence


def test_adagrad_counts_parameters_that_no_gradient_has_reached(tmp_path: Path) -> None:
    run = Run("Adagrad")
    for parameter in run.model.head.parameters():
        parameter.requires_grad_(False)
    (found,) = findings(tmp_path, run.step(4).saved(), CHECK)
    assert found.subjects == ("head.weight", "head.bias")


def test_steps_that_differ_are_counted(tmp_path: Path) -> None:
    run = Run()
    run.model.head.requires_grad_(False)
    run.step(3)
    run.model.head.requires_grad_(True)
    (found,) = findings(tmp_path, run.step(4).saved(), CHECK)
    assert (found.id, found.severity) == ("optimizer-steps-differ", Severity.NOTICE)
    assert "has stepped 7 parameters 7 times and 2 others 4 times (22.2 %): head.weight, head.bias" in found.says


def test_an_optimizer_without_weights_is_checked_by_its_entries(tmp_path: Path) -> None:
    saved = copied(Run().step(3).optimizer.state_dict())
    saved["state"][0]["exp_avg_sq"].neg_().sub_(1)
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.subjects) == ("moment-negative", ("entry 0",))
