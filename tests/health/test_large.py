"""Weights far too large."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only


def test_the_largest_comes_first(tmp_path: Path) -> None:
    state = layers()
    # Single ones are said to be out of proportion.
    state["layers.1.fc.weight"][3] = 2000.0
    state["layers.4.fc.weight"][3] = -5e6
    found = only(observe(tmp_path, state, "large-weight"))
    assert found.severity is Severity.WARNING
    assert found.subjects == ("layers.4.fc.weight", "layers.1.fc.weight")
    assert found.says.startswith("layers.4.fc.weight reaches 5e+06 in magnitude")
    assert number(found, "threshold_largest") == 1000


def test_a_root_mean_square_of_more_than_ten(tmp_path: Path) -> None:
    state = layers()
    state["layers.1.fc.weight"] *= 80
    found = only(observe(tmp_path, state, "large-weight"))
    assert (found.subjects, found.severity) == (("layers.1.fc.weight",), Severity.NOTICE)


def test_a_huge_bias_is_a_note(tmp_path: Path) -> None:
    state = {"fc.weight": torch.randn(8, 8), "fc.bias": torch.randn(8)}
    assert observe(tmp_path, state, "large-weight") == ()
    state["fc.bias"][2] = -1e5
    assert only(observe(tmp_path, state, "large-weight")).severity is Severity.NOTICE


@pytest.mark.parametrize(("value", "severity"), [(9e29, Severity.NOTICE), (-1e30, Severity.WARNING)])
def test_an_absurd_bias_is_a_warning(tmp_path: Path, value: float, severity: Severity) -> None:
    state = {"fc.weight": torch.randn(8, 8), "fc.bias": torch.randn(8)}
    state["fc.bias"][2] = value
    assert only(observe(tmp_path, state, "large-weight")).severity is severity


def test_what_is_no_weight_may_be_large(tmp_path: Path) -> None:
    state = layers() | {
        "bn.running_var": torch.full((8,), 1e6),
        "anchors": torch.full((4, 2), 1e4) + torch.arange(8).reshape(4, 2),
        "pos_embed": torch.arange(4000.0).reshape(1, 1000, 4),
        "rope.freqs": torch.arange(4000.0).reshape(1000, 4),
    }
    assert observe(tmp_path, state, "large-weight") == ()


def test_tensors_that_nobody_knows_are_a_note(tmp_path: Path) -> None:
    pictures = torch.rand(4, 40) * 2000
    assert only(observe(tmp_path, {"pictures": pictures}, "large-weight")).severity is Severity.NOTICE
    assert observe(tmp_path, {"pictures": pictures / 10}, "large-weight") == ()
