"""Rows in another order: a permuted copy where the next layer follows, something else where it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.compare.report import Verdict
from tests.compare.files import compare

Arrays = dict[str, NDArray[np.float32]]


def network() -> Arrays:
    random = np.random.default_rng(1)
    shapes = ((48, 40), (64, 48), (12, 64))
    return {f"f{n}.weight": random.standard_normal(shape).astype(np.float32) for n, shape in enumerate(shapes)}


def ids(folder: Path, a: Arrays, b: Arrays) -> dict[str, Verdict]:
    return {verdict.id: verdict for verdict in compare(folder, dict(a), dict(b)).verdicts}


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_rows_that_no_layer_follows_compute_something_else(tmp_path: Path, noise: float) -> None:
    random = np.random.default_rng(2)
    moved = {
        name: (x[random.permutation(len(x))] + noise * random.standard_normal(x.shape)).astype(np.float32)
        for name, x in network().items()
    }
    found = ids(tmp_path, network(), moved)
    assert set(found) == {"reordered"}
    assert found["reordered"].proved == (noise == 0)
    assert "3 single tensors" in found["reordered"].says and "computes something else" in found["reordered"].says


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_rows_that_the_next_layer_follows_are_a_permuted_copy(tmp_path: Path, noise: float) -> None:
    random = np.random.default_rng(2)
    p, q = random.permutation(48), random.permutation(64)
    state = network()
    moved = {
        "f0.weight": state["f0.weight"][p],
        "f1.weight": state["f1.weight"][q][:, p],
        "f2.weight": state["f2.weight"][:, q],
    }
    moved = {n: (x + noise * random.standard_normal(x.shape)).astype(np.float32) for n, x in moved.items()}
    found = ids(tmp_path, network(), moved)
    assert set(found) == {"permuted"}
    assert found["permuted"].proved == (noise == 0)
    assert "follows" not in found["permuted"].says


def test_classes_in_another_order_are_told_beside_it(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    p = random.permutation(48)
    state = network()
    moved = {
        "f0.weight": state["f0.weight"][p],
        "f1.weight": state["f1.weight"][:, p],
        "f2.weight": state["f2.weight"][::-1],
    }
    found = ids(tmp_path, network(), moved)
    assert "No other tensor follows the order of rows of f2.weight" in found["permuted"].says
