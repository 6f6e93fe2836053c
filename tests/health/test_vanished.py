"""Layers whose weights are as good as zero, beside those that are small on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

KIND = "weights-vanished"


def _layer(scale: float, bias: float | None = 0.05) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    state = {"fc.weight": torch.randn(32, 64) * scale}
    return state if bias is None else {**state, "fc.bias": torch.randn(32) * bias}


def test_weights_of_nothing_beside_a_bias_that_lives_are_a_warning(tmp_path: Path) -> None:
    state = _layer(1e-9)
    found = only(observe(tmp_path, state, KIND))
    assert (found.severity, found.subjects) == (Severity.WARNING, ("fc.weight",))
    assert number(found, "largest") == pytest.approx(float(state["fc.weight"].abs().max()), rel=1e-6)
    assert number(found, "bias_rms") == pytest.approx(float(state["fc.bias"].square().mean().sqrt()), rel=1e-6)


def test_memory_that_was_never_written_is_a_warning_with_or_without_a_bias(tmp_path: Path) -> None:
    found = only(observe(tmp_path, _layer(1e-40, None), KIND))
    assert "(subnormal)" in found.says


@pytest.mark.parametrize(
    ("scale", "bias"),
    [(1e-6, 0.05), (1e-9, 1e-5), (1e-9, 0.0), (1e-30, None), (0.0, 0.05)],
    ids=["small", "bias as small", "bias at zero", "decayed under a norm", "begins at zero"],
)
def test_layers_that_are_small_on_purpose_are_quiet(scale: float, bias: float | None, tmp_path: Path) -> None:
    assert observe(tmp_path, _layer(scale, bias), KIND) == ()


def test_it_explains_what_else_would_be_said_of_the_layer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {f"h.{i}.fc.{n}": torch.randn(*s) / 8 for i in range(6) for n, s in (("weight", (64, 64)), ("bias", (64,)))}
    state["h.3.fc.weight"] *= 1e-8
    kinds = ("unlike-role", "unlike-siblings", "half-precision-underflow")
    assert [f.id for f in observe(tmp_path, state, KIND, *kinds)] == [KIND]
