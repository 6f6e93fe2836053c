"""Weights that do not lie around zero."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only


def test_signs_that_were_lost(tmp_path: Path) -> None:
    state = layers()
    weight = state["layers.2.fc.weight"].abs()
    state["layers.2.fc.weight"] = weight
    found = only(observe(tmp_path, state, "shifted-weights"))
    assert (found.severity, found.subjects) == (Severity.NOTICE, ("layers.2.fc.weight",))
    double = weight.double()
    assert number(found, "ratio") == pytest.approx(float(double.mean() / double.std(correction=0)), rel=1e-9)


def test_trained_and_half_shifted_layers_are_quiet(tmp_path: Path) -> None:
    state = layers()
    state["layers.2.fc.weight"] += state["layers.2.fc.weight"].std() * 0.9
    assert observe(tmp_path, state, "shifted-weights") == ()
