"""Averages of an optimizer that no gradients can have made, beside runs of every kind that stay within the bound."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.findings import Severity
from inspector.health.checks.moment_scale import CHECK, bound_of
from tests.health.observed import number
from tests.health.trainings import Run, findings

BETAS = [(0.9, 0.999), (0.5, 0.999), (0.0, 0.9), (0.9, 0.95), (0.99, 0.999), (0.95, 0.9), (0.9, 0.81)]


def _gradients(rng: np.random.Generator, steps: int) -> list[np.ndarray[Any, Any]]:
    """Of 5 shapes: noise, heavy tails, one burst, growing, and those that reach the bound of the usual betas."""
    at = np.arange(steps)
    burst = np.where(at == steps // 2, 1e6, 1e-3)
    return [rng.normal(size=steps), rng.standard_cauchy(steps) ** 3, burst, 1.5 ** np.minimum(at, 200), 0.9**-at * 1.0]


@pytest.mark.parametrize("betas", BETAS)
@pytest.mark.parametrize("steps", [1, 2, 7, 60, 400])
def test_no_gradients_take_adams_average_beyond_the_bound(betas: tuple[float, float], steps: int) -> None:
    rng = np.random.default_rng(0)
    first, second = betas
    for gradients in _gradients(rng, steps):
        m = v = 0.0
        for g in gradients:
            m, v = first * m + (1 - first) * float(g), second * v + (1 - second) * float(g) ** 2
        assert abs(m) <= bound_of(first, second, steps) * math.sqrt(v) * (1 + 1e-9)


@pytest.mark.parametrize("betas", BETAS)
def test_the_bound_is_reached(betas: tuple[float, float]) -> None:
    """By gradients in the ratio that Cauchy and Schwarz name: it is no larger than it must be."""
    first, second = betas
    m = v = 0.0
    for n in range(1, 31):
        # g_i such that b2^(i/2) g_i is in proportion to b1^i / b2^(i/2), i counted back from the last.
        g = (first / second) ** (30 - n) if first else float(n == 30)
        m, v = first * m + (1 - first) * g, second * v + (1 - second) * g * g
    assert abs(m) / math.sqrt(v) == pytest.approx(bound_of(first, second, 30), rel=1e-9)


def test_the_usual_bound_by_hand() -> None:
    # 0.1 / sqrt(0.001) / sqrt(1 - 0.81 / 0.999)
    assert bound_of(0.9, 0.999, 1e9) == pytest.approx(7.2703, rel=1e-4)
    assert bound_of(0.9, 0.999, 1) == pytest.approx(0.1 / math.sqrt(0.001), rel=1e-9)


def _times(saved: dict[str, Any], key: int, name: str, factor: float) -> dict[str, Any]:
    saved["optimizer"]["state"][key][name] = saved["optimizer"]["state"][key][name] * factor
    return saved


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "NAdam", "RAdam"])
def test_an_average_far_beyond_its_squares_is_a_warning(optimizer: str, tmp_path: Path) -> None:
    saved = Run(optimizer, frozen=["emb.weight"]).step(20).saved()
    assert findings(tmp_path, saved, CHECK) == ()
    (found,) = findings(tmp_path, _times(saved, 3, "exp_avg", 1e4), CHECK)
    assert (found.severity, len(found.subjects)) == (Severity.WARNING, 1)
    # After 20 steps.
    assert number(found, "bound") == pytest.approx(bound_of(0.9, 0.999, 20), rel=1e-6)
    assert number(found, "ratio") > 10 * number(found, "bound")


def test_sixteen_bits_hold_squares_back_and_are_not_judged(tmp_path: Path) -> None:
    saved = Run("Adam", frozen=["emb.weight"]).step(20).saved()
    for entry in saved["optimizer"]["state"].values():
        entry["exp_avg"], entry["exp_avg_sq"] = entry["exp_avg"].half(), (entry["exp_avg_sq"] * 1e-6).half()
    assert findings(tmp_path, saved, CHECK) == ()


def test_one_parameters_squares_beyond_all_others_are_a_notice(tmp_path: Path) -> None:
    saved = Run("AdamW", frozen=["emb.weight"]).step(20).saved()
    (found,) = findings(tmp_path, _times(saved, 3, "exp_avg_sq", 1e12), CHECK)
    assert found.severity is Severity.NOTICE


def test_a_momentum_that_throws_its_layer_away_is_a_warning(tmp_path: Path) -> None:
    saved = Run("SGD", frozen=["emb.weight"]).step(20).saved()
    assert findings(tmp_path, saved, CHECK) == ()
    (found,) = findings(tmp_path, _times(saved, 3, "momentum_buffer", 1e8), CHECK)
    assert (found.severity, len(found.subjects)) == (Severity.WARNING, 1)
    assert number(found, "times") > 1e3 and number(found, "step") > 1


def test_a_momentum_that_alone_is_left_is_quiet(tmp_path: Path) -> None:
    """All others have decayed to nothing: their layers are frozen, or dead."""
    saved = Run("SGD", frozen=["emb.weight"]).step(20).saved()
    for key, entry in saved["optimizer"]["state"].items():
        if key != 3:
            entry["momentum_buffer"] = entry["momentum_buffer"] * 1e-12
    assert findings(tmp_path, saved, CHECK) == ()
