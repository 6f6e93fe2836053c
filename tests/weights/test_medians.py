"""The median of small arrays is numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inspector.weights.medians import median


@pytest.mark.parametrize("kind", ["float64", "float32", "int64"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 101])
def test_it_is_numpys_to_the_last_bit(kind: str, count: int) -> None:
    values = (np.random.default_rng(count).standard_normal(count) * 100).astype(kind)
    assert median(values) == float(np.median(values))


def test_nan_and_nothing_have_none() -> None:
    assert math.isnan(median(np.array([1.0, math.nan, 2.0])))
    assert math.isnan(median(np.zeros(0)))
    assert median(np.array([1.0, math.inf, math.inf])) == math.inf
