"""Gradients that have ended are told from noise, from a burst long ago, and from a parameter that never had any."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from inspector.findings import Severity
from inspector.health.checks.moments_faded import CHECK
from tests.health.observed import number
from tests.health.trainings import Run, findings


def _saved(*, ended: int = 0, keys: tuple[int, ...] = (4, 5, 6), burst: float = 1.0) -> dict[str, Any]:
    """ended: steps of zero gradients at last, by Adam's own rule. burst: one gradient so large, twenty steps before."""
    saved = Run(frozen=["emb.weight"]).step(5).saved()
    torch.manual_seed(0)
    for key, entry in saved["optimizer"]["state"].items():
        m, v = torch.zeros_like(entry["exp_avg"]), torch.zeros_like(entry["exp_avg_sq"])
        for step in range(200 + ended):
            gone = key in keys and step >= 200
            g = torch.randn_like(m) * (0.0 if gone else burst if step == 180 else 1.0)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        entry["exp_avg"], entry["exp_avg_sq"] = m, v
    return saved


def test_parameters_whose_gradients_have_ended_are_named_with_the_steps(tmp_path: Path) -> None:
    saved = _saved(ended=150)
    (found,) = findings(tmp_path, saved, CHECK)
    assert (found.id, found.severity, len(found.subjects)) == ("gradients-faded", Severity.WARNING, 3)
    assert abs(number(found, "steps without") - 150) < 20
    # 0.23 (0.9 / sqrt(0.999))^150
    assert math.isclose(number(found, "ratio"), 0.23 * (0.9 / 0.999**0.5) ** 150, rel_tol=2)


def test_noise_a_burst_and_a_run_whose_gradients_all_ended_are_quiet(tmp_path: Path) -> None:
    assert findings(tmp_path, _saved(), CHECK) == ()
    assert findings(tmp_path, _saved(burst=1e4), CHECK) == ()
    assert findings(tmp_path, _saved(ended=60), CHECK) == ()
    assert findings(tmp_path, _saved(ended=200, keys=tuple(range(20))), CHECK) == ()


def test_one_parameter_is_a_note(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, _saved(ended=150, keys=(4,)), CHECK)
    assert found.severity is Severity.NOTICE
