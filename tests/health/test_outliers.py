"""Channels far larger than the rest."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only


def test_the_cost_of_int8_is_told(tmp_path: Path) -> None:
    state = layers(width=128)
    weight = state["layers.2.fc.weight"]
    weight[5] *= 50
    found = only(observe(tmp_path, state, "outlier-channels"))
    assert found.severity is Severity.NOTICE and found.subjects == ("layers.2.fc.weight",)
    double = weight.double()
    rms, peaks = double.square().mean().sqrt(), double.abs().amax(1)
    assert number(found, "row") == 5
    assert number(found, "row_over_median") == pytest.approx(float(peaks[5] / peaks.sort().values[63:65].mean()), 1e-5)
    assert number(found, "int8_error") == pytest.approx(float(peaks.max() / (127 * math.sqrt(12) * rms)), rel=1e-6)
    # Held against rounding done.
    step = peaks[:, None] / 127
    rounded = ((double / step).round() * step - double).square().mean().sqrt() / rms
    assert number(found, "int8_error_by_row") == pytest.approx(float(rounded), rel=0.1)


def test_one_super_weight(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(64, 64)
    weight[9, 9] = 30.0
    found = only(observe(tmp_path, {"fc.weight": weight}, "outlier-channels"))
    assert number(found, "peak_over_rms") == pytest.approx(30 / float(weight.square().mean().sqrt()), rel=1e-5)


def test_normal_weights_biases_and_norms_are_quiet(tmp_path: Path) -> None:
    state = layers() | {"ln.weight": torch.ones(300), "ln.bias": torch.zeros(300)}
    state["ln.weight"][3] = 90
    assert observe(tmp_path, state, "outlier-channels") == ()
