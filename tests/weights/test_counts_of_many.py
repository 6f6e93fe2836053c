"""Histograms of many tensors at once are those of each by itself, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.checkpoint.dtypes import DTYPES
from inspector.weights import counts_of_many as many
from inspector.weights.counts_of_many import counts_of_many
from inspector.weights.histogram import counts_between
from inspector.weights.measure import code_values, measure_chunks
from inspector.weights.report import TensorStatistics
from tests.steps import steps


def measured(values: np.ndarray, dtype: str) -> TensorStatistics:
    """What would be measured of a tensor with these numbers."""
    if dtype == "bfloat16":
        raw = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        raw = values.astype(DTYPES[dtype].raw)
    numbers = measure_chunks([raw], dtype, raw.shape)
    fields = {name: getattr(numbers, name) for name in type(numbers).__slots__}
    assert code_values("float32") is None
    return TensorStatistics(name="a", path=("a",), shape=raw.shape, dtype=dtype, **fields)


def tensors(count: int) -> list[TensorStatistics]:
    """Seeded, of four types, with zeros of both signs, edges that values lie on, NaN, constants, and none finite."""
    drawn = np.random.default_rng(5)
    made = []
    for number in range(count):
        values = drawn.standard_normal(int(drawn.integers(1, 90))) * 10.0 ** drawn.uniform(-6, 3)
        dtype = ("float32", "float16", "bfloat16", "float64")[number % 4]
        values = np.clip(values, -60000, 60000) if dtype == "float16" else values
        if number % 5 == 0:
            values[::3] = 0.0
            values[1::6] = -0.0
        if number % 7 == 0:
            values = np.abs(values) if number % 2 else -np.abs(values)
        if number % 11 == 0:
            values[:] = values[0]
        if number % 13 == 0:
            values[0] = np.nan
        if number % 29 == 0:
            values[:] = np.inf
        if dtype == "float64" and number % 3 == 0:
            values[-1] = 1e300
        made.append(measured(values, dtype))
    return made


@pytest.mark.parametrize("at_once", [1, 200, 1 << 17])
def test_they_are_those_of_each_by_itself(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "_MOST_CELLS", at_once)
    made = tensors(240)
    rows = []
    for one in made:
        span = 4 * one.rms if np.isfinite(one.rms) and one.rms else 1.0
        rows.append(np.linspace(-span, span, 17))
        if one.finite and one.rms < 1e200:
            rows[-1][0], rows[-1][-1] = min(rows[-1][0], one.minimum), max(rows[-1][-1], one.maximum)
            rows[-1][8] = np.clip(one.maximum, rows[-1][7], rows[-1][9])
    edges = np.array(rows)
    alone = np.array([counts_between(one, own) for one, own in zip(made, edges, strict=True)])
    assert counts_of_many(made, edges).tobytes() == alone.tobytes()


def test_work_for_each_tensor_is_a_line_or_two() -> None:
    made = tensors(8)
    few, lots = (np.tile(np.linspace(-4, 4, 65), (n, 1)) for n in (400, 1600))
    work = [steps(lambda edges=edges: counts_of_many(made * (len(edges) // 8), edges)) for edges in (few, lots)]
    assert work[1] - work[0] < 1200 * 24
