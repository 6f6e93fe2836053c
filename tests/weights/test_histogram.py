"""Histograms and quantiles from the value table against numpy's on the elements."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from inspector.checkpoint.types import TensorInfo
from inspector.errors import UsageError
from inspector.weights.histogram import histogram, quantiles
from inspector.weights.measure import describe, measure_chunks
from inspector.weights.report import TensorStatistics


def statistics_of(array: NDArray[Any], dtype: str = "") -> TensorStatistics:
    dtype = dtype or array.dtype.name
    tensor = TensorInfo(name="w", path=("w",), shape=array.shape, dtype=dtype, nbytes=array.nbytes, storage_id="0")
    return describe(tensor, measure_chunks([array.reshape(-1)], dtype, array.shape))


@pytest.mark.parametrize("draw", ["normal", "uniform", "laplace", "lognormal"])
def test_float32_bins_are_within_half_a_percent_of_the_peak(draw: str) -> None:
    array = getattr(np.random.default_rng(0), draw)(size=400_000).astype(np.float32)
    counts, edges = np.histogram(array.astype(np.float64), bins=128)
    ours = histogram(statistics_of(array), bins=128)
    np.testing.assert_allclose(ours.edges, edges, rtol=1e-12, atol=1e-12)
    assert sum(ours.counts) == pytest.approx(array.size, rel=1e-12)
    # Noise of where elements lie inside a cell: about sqrt(n) of a border cell, a few in ten thousand here.
    assert np.abs(np.asarray(ours.counts) - counts).max() < 0.005 * counts.max()


def test_bfloat16_bins_are_exact() -> None:
    values = torch.randn(20_000, generator=torch.Generator().manual_seed(0)).bfloat16()
    ours = histogram(statistics_of(values.view(torch.uint16).numpy(), "bfloat16"), bins=50)
    counts, _ = np.histogram(values.double().numpy(), bins=50)
    assert ours.counts == tuple(counts)


@settings(deadline=None)
@given(hnp.arrays(np.int8, st.integers(1, 200)), st.integers(1, 40))
def test_small_integers_are_binned_exactly(array: NDArray[np.int8], bins: int) -> None:
    ours = histogram(statistics_of(array), bins=bins)
    # At numpy's own edges: it recomputes them when sorting elements in, we compare at the same ones.
    sharp = np.asarray(ours.edges)
    counts = np.array([((array >= a) & (array < b)).sum() for a, b in pairwise(sharp)])
    counts[-1] += (array == sharp[-1]).sum()
    np.testing.assert_array_equal(ours.counts, counts)


@settings(deadline=None)
@given(
    hnp.arrays(np.float32, st.integers(1, 80), elements=st.floats(-(2.0**100), 2.0**100, width=32)),
    st.integers(1, 30),
)
def test_no_element_is_lost_or_counted_twice(array: NDArray[np.float32], bins: int) -> None:
    ours = histogram(statistics_of(array), bins=bins)
    assert sum(ours.counts) == pytest.approx(array.size, rel=1e-9)
    assert min(ours.counts) >= 0
    assert ours.edges[0] <= array.min()
    assert ours.edges[-1] >= array.max()


def test_constant_empty_and_non_finite() -> None:
    constant = histogram(statistics_of(np.full(7, 3.0, np.float32)), bins=4)
    assert (constant.edges, constant.counts) == ((2.5, 2.75, 3.0, 3.25, 3.5), (0.0, 0.0, 7.0, 0.0))
    assert histogram(statistics_of(np.full(7, np.nan, np.float32)), bins=3).counts == (0.0, 0.0, 0.0)
    mixed = histogram(statistics_of(np.array([np.inf, 1.0, 2.0, np.nan], np.float32)), bins=2)
    assert (mixed.edges, mixed.counts) == ((1.0, 1.5, 2.0), (1.0, 1.0))


def test_a_span_leaves_out_what_is_outside() -> None:
    array = np.array([-5.0, 0.25, 0.25, 0.75, 9.0], np.float32)
    assert histogram(statistics_of(array), bins=2, span=(0.0, 1.0)).counts == pytest.approx((2.0, 1.0))


def test_values_beyond_float32_are_kept() -> None:
    ours = histogram(statistics_of(np.array([-1e300, 0.0, 1e300])), bins=3)
    assert sum(ours.counts) == pytest.approx(3)


def test_nonsense_is_refused() -> None:
    some = statistics_of(np.ones(3, np.float32))
    with pytest.raises(UsageError, match="at least 1 bin, not 0"):
        histogram(some, bins=0)
    with pytest.raises(UsageError, match="cannot run from 1 to 1"):
        histogram(some, span=(1.0, 1.0))
    with pytest.raises(UsageError, match="between 0 and 1"):
        quantiles(some, (1.5,))


def test_quantiles_within_the_width_of_a_cell() -> None:
    array = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    at = (0.0, 0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999, 1.0)
    exact = np.quantile(array.astype(np.float64), at)
    np.testing.assert_allclose(quantiles(statistics_of(array), at), exact, rtol=0.002, atol=1e-4)


@settings(deadline=None)
@given(hnp.arrays(np.int8, st.integers(1, 60)), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
def test_quantiles_of_small_integers_are_exact(array: NDArray[np.int8], at: float) -> None:
    assert quantiles(statistics_of(array), (at,))[0] == np.quantile(array, at, method="inverted_cdf")


def test_quantiles_of_nothing() -> None:
    assert np.isnan(quantiles(statistics_of(np.empty(0, np.float32)), (0.5,))[0])
