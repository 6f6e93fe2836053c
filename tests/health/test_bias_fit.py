"""A matrix that was turned is told by its bias, where the other matrices of the file lie the other way."""

from __future__ import annotations

from pathlib import Path

import torch

from inspector.findings import Severity
from tests.health.observed import observe, only


def _tower() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    layers = {f"tower.{i}": torch.nn.Linear(20 + i, 30 + i) for i in range(4)}
    return {f"{name}.{key}": value for name, layer in layers.items() for key, value in layer.state_dict().items()}


def test_one_matrix_that_was_turned(tmp_path: Path) -> None:
    state = _tower()
    assert observe(tmp_path, state, "bias-does-not-fit") == ()
    state["tower.2.weight"] = state["tower.2.weight"].T.contiguous()
    found = only(observe(tmp_path, state, "bias-does-not-fit"))
    assert (found.severity, found.subjects) == (Severity.WARNING, ("tower.2.weight",))
    assert "is 22x32 beside a bias of 32: the transposed shape would fit, as it does with 3 others" in found.says
    state["tower.2.weight"] = torch.randn(9, 11)
    assert "neither side fits" in only(observe(tmp_path, state, "bias-does-not-fit")).says


def test_files_that_keep_inputs_first_and_mixtures_are_quiet(tmp_path: Path) -> None:
    turned = {k: v.T.contiguous() if v.ndim == 2 else v for k, v in _tower().items()}
    assert observe(tmp_path, turned, "bias-does-not-fit") == ()
    mixed = _tower() | {f"h.{k}": v for k, v in turned.items()}
    assert observe(tmp_path, mixed, "bias-does-not-fit") == ()
