"""Merged statistics are those of the elements together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.checkpoint.types import TensorInfo
from inspector.weights.measure import describe, measure_chunks
from inspector.weights.merge import merge
from inspector.weights.report import TensorStatistics

OF_ONE_TENSOR = ("rows", "values", "fits", "distinct", "fours", "pages")


def statistics_of(array: NDArray[np.float32], name: str = "w") -> TensorStatistics:
    tensor = TensorInfo(
        name=name, path=(name,), shape=array.shape, dtype="float32", nbytes=array.nbytes, storage_id="0"
    )
    return describe(tensor, measure_chunks([array.reshape(-1)], "float32", array.shape))


def check_equal(got: TensorStatistics, wanted: TensorStatistics) -> None:
    for field in dataclasses.fields(TensorStatistics):
        if field.name not in ("name", "path", "shape", "mean", "std", "rms", *OF_ONE_TENSOR):
            assert getattr(got, field.name) == getattr(wanted, field.name), field.name
    for name in ("mean", "std", "rms"):
        assert getattr(got, name) == pytest.approx(getattr(wanted, name), rel=1e-9, nan_ok=True)


def test_two_parts_are_the_whole() -> None:
    rng = np.random.default_rng(0)
    whole = rng.normal(5, 2, 10_000).astype(np.float32)
    whole[7000] = np.inf
    for cut in (1, 4000, 9999):
        check_equal(merge(statistics_of(whole[:cut]), statistics_of(whole[cut:])), statistics_of(whole))


def test_order_and_grouping_do_not_matter_but_for_the_first_odd_element() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (statistics_of(rng.normal(m, 1, 500).astype(np.float32)) for m in (0, 100, -3))
    check_equal(merge(merge(a, b), c), merge(a, merge(b, c)))
    check_equal(merge(a, b), merge(b, a))


def test_an_empty_part_changes_nothing() -> None:
    empty = statistics_of(np.empty(0, np.float32))
    some = statistics_of(np.array([1.0, np.nan, 4.0], np.float32))
    check_equal(merge(empty, some), some)
    check_equal(merge(some, empty), some)
    assert np.isnan(merge(empty, empty).mean)


def test_a_non_finite_element_is_found_behind_the_first_part() -> None:
    a, b = statistics_of(np.ones(10, np.float32)), statistics_of(np.array([1.0, np.nan], np.float32))
    merged = merge(a, b, name="block")
    assert (merged.first_non_finite, merged.name, merged.shape) == (11, "block", (12,))


def test_different_types_are_mixed() -> None:
    a = statistics_of(np.ones(2, np.float32))
    assert merge(a, dataclasses.replace(a, dtype="bfloat16")).dtype == "mixed"
    assert merge(a, a).dtype == "float32"
