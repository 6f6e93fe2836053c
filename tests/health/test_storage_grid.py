"""Weights whose numbers a shorter type would hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import layers, number, observe, only


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "bfloat16"), (torch.float16, "float16")])
def test_bytes_that_could_be_saved(tmp_path: Path, dtype: torch.dtype, name: str) -> None:
    state = {key: weight.to(dtype).float() for key, weight in layers(4).items()}
    found = only(observe(tmp_path, state, "narrower-type"))
    assert found.severity is Severity.INFO
    assert (number(found, "saved_nbytes"), dict(found.evidence)["type"]) == (4 * 1024 * 2, name)
    assert "All numbers of 4 float32 tensors (layers.0.fc.weight, " in found.says
    assert f"fit {name}: saved so, the file is 8.19 kB smaller and loses nothing." in found.says


def test_doubles_that_are_singles(tmp_path: Path) -> None:
    state = {key: weight.double() for key, weight in layers(1).items()}
    assert dict(only(observe(tmp_path, state, "narrower-type")).evidence)["type"] == "float32"


def test_one_number_off_the_grid_few_values_and_shared_ones(tmp_path: Path) -> None:
    state = {key: weight.bfloat16().float() for key, weight in layers(1).items()}
    state["tied.weight"] = state["layers.0.fc.weight"]
    assert number(only(observe(tmp_path, state, "narrower-type")), "saved_nbytes") == 2048
    state = {"a.weight": state["tied.weight"].clone(), "ln.weight": torch.ones(100), "b.weight": torch.randn(4, 4)}
    state["a.weight"][3, 3] = 0.1
    assert observe(tmp_path, state, "narrower-type") == ()
