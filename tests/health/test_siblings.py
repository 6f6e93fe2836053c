"""Layers whose scale is unlike their siblings'."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only

KINDS = ("unlike-siblings", "unlike-role")


def test_one_layer_scaled_twice(tmp_path: Path) -> None:
    state = layers(8)
    state["layers.4.fc.weight"] *= 3
    found = only(observe(tmp_path, state, *KINDS))
    assert (found.id, found.severity) == ("unlike-siblings", Severity.NOTICE)
    assert found.subjects == ("layers.4.fc.weight",)
    # ln 3 over the least spread of 0.1.
    assert number(found, "z") == pytest.approx(10.99, abs=0.5)
    assert "times the" in found.says and "of its 8 siblings" in found.says


def test_a_layer_far_from_all_of_its_kind(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {f"part{chr(97 + i)}.weight": torch.randn(30 + i, 40) / 40**0.5 for i in range(6)}
    state["parta.weight"] *= 40
    found = only(observe(tmp_path, state, *KINDS))
    assert (found.id, found.severity, found.subjects) == ("unlike-role", Severity.NOTICE, ("parta.weight",))
    assert number(found, "factor") == pytest.approx(40, rel=0.05)
    state["parta.weight"] /= 1600
    assert number(only(observe(tmp_path, state, *KINDS)), "factor") == pytest.approx(1 / 40, rel=0.05)


def test_ten_times_is_far_where_the_others_are_close(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {f"part{chr(97 + i)}.weight": torch.randn(30 + i, 40) / 40**0.5 for i in range(6)}
    state["partc.weight"] *= 10
    assert only(observe(tmp_path, state, *KINDS)).subjects == ("partc.weight",)
    for i in range(6):
        state[f"part{chr(97 + i)}.weight"] *= 2.0**i
    assert observe(tmp_path, state, *KINDS) == ()


def test_first_and_last_layers_trends_and_twice_are_quiet(tmp_path: Path) -> None:
    state = layers(8)
    state["layers.0.fc.weight"] *= 10
    state["layers.7.fc.weight"] *= 10
    state["layers.3.fc.weight"] *= 1.5
    assert observe(tmp_path, state, *KINDS) == ()
    trend = {name: weight * 1.4**i for i, (name, weight) in enumerate(layers(8).items())}
    assert observe(tmp_path, trend, *KINDS) == ()


def test_norms_are_compared_too(tmp_path: Path) -> None:
    state = {f"h.{i}.ln_1.{n}": torch.full((16,), 0.9 + i / 50) for i in range(6) for n in ("weight", "bias")}
    assert observe(tmp_path, state, *KINDS) == ()
    state["h.2.ln_1.weight"] *= 20
    assert only(observe(tmp_path, state, *KINDS)).subjects == ("h.2.ln_1.weight",)


@pytest.mark.parametrize(
    ("factor", "severity"),
    [(16, Severity.NOTICE), (64, Severity.WARNING), (1 / 64, Severity.NOTICE), (5, None), (1 / 5, None)],
)
@pytest.mark.parametrize("count", [4, 12])
def test_one_layer_of_another_scale_among_few_and_many(
    count: int, factor: float, severity: Severity | None, tmp_path: Path
) -> None:
    """Twelve have a spread of their own, four are held against each other. Far above them no training leads."""
    state = layers(count)
    state["layers.2.fc.weight"] *= factor
    found = observe(tmp_path, state, *KINDS)
    if severity is None and count == 4:
        assert found == ()
    elif severity is not None:
        assert (only(found).severity, only(found).subjects) == (severity, ("layers.2.fc.weight",))
        assert number(only(found), "siblings_rms") == pytest.approx(32**-0.5, rel=0.1)


def test_few_siblings_that_differ_among_themselves_are_quiet(tmp_path: Path) -> None:
    """Also at the ends, where ten times is nothing, and of norms."""
    state = {name: weight * 5.0**i for i, (name, weight) in enumerate(layers(4).items())}
    assert observe(tmp_path, state, *KINDS) == ()
    state = layers(4)
    state["layers.3.fc.weight"] *= 20
    assert observe(tmp_path, state, *KINDS) == ()
    norms = {f"h.{i}.ln.{n}": torch.full((16,), 50.0 if i == 1 else 1.0) for i in range(4) for n in ("weight", "bias")}
    assert observe(tmp_path, norms, *KINDS) == ()
