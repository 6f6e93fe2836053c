"""Stretches of a tensor, cut and joined in any way, against one pass over it: equal to the last bit."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inspector.weights import kernel, row_sums
from inspector.weights.accumulate import accumulate_part
from inspector.weights.measure import code_values, measure_chunks
from inspector.weights.moments import LEAF, TILE
from inspector.weights.parts import Numbers, Part, joined, numbers_of

SMALL_LEAF = 2 * TILE
DTYPES = ("float32", "float16", "bfloat16", "float64", "int8", "int64", "float8_e4m3fn", "bool")


def whole_of(parts: list[Part], dtype: str, shape: tuple[int, ...]) -> Numbers:
    return numbers_of(joined(parts), dtype, shape, code_values(dtype))


def same(one: Numbers, other: Numbers) -> bool:
    """To the last bit, NaN included."""
    return repr(one) == repr(other)


def part_of(array: NDArray[Any], dtype: str, shape: tuple[int, ...], first: int, end: int, chunk: int) -> Part:
    chunks = (array[at : min(end, at + chunk)] for at in range(first, end, chunk))
    return accumulate_part(chunks, dtype, shape, code_values(dtype), first=first)


def array_of(dtype: str, numel: int, seed: int) -> NDArray[Any]:
    """With what makes cutting hard: zeros, repeated pages, NaN in places, few values, huge and tiny ones."""
    rng = np.random.default_rng(seed)
    if dtype in ("bfloat16", "float8_e4m3fn", "bool", "int8"):
        raw = rng.integers(0, 2 if dtype == "bool" else 256, numel, dtype=np.uint8)
        if dtype == "bfloat16":
            return (rng.standard_normal(numel).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return raw.view(np.int8) if dtype == "int8" else raw.astype(bool) if dtype == "bool" else raw
    if dtype == "int64":
        return rng.integers(-(2**62), 2**62, numel) if seed % 2 else rng.integers(0, 7, numel)
    array = rng.standard_normal(numel).astype(dtype)
    at = rng.integers(0, max(1, numel - 5000), 6)
    array[at[0] : at[0] + 4096] = 0
    array[at[1] : at[1] + 2048] = array[at[2] : at[2] + 2048].copy()
    if seed % 3 == 0:
        array[at[3] : at[3] + 3] = np.nan
        array[at[4]] = np.inf
    if seed % 3 == 1 and dtype != "float16":
        array *= np.where(rng.random(numel) < 1e-3, 1e30, 1e-3)
    if seed % 4 == 3:
        array = np.round(array).astype(dtype)
    return array


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_cut_in_any_order_with_repeats_is_one_pass(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    columns = data.draw(st.sampled_from([1, 7, 640, 4096, TILE, 3 * TILE // 2]))
    rows = max(1, data.draw(st.integers(1, 5 * SMALL_LEAF)) // columns)
    shape = data.draw(st.sampled_from([(rows, columns), (rows * columns,), (1, rows * columns), (rows, 1, columns)]))
    numel = rows * columns
    array = array_of(dtype, numel, data.draw(st.integers(0, 100)))
    leaves = -(-numel // SMALL_LEAF)
    inner = data.draw(st.sets(st.integers(1, max(1, leaves - 1)))) if leaves > 1 else set()
    edges = [0, *sorted(n * SMALL_LEAF for n in inner), numel]
    chunk = data.draw(st.sampled_from([TILE, TILE // 3 + 1, 2 * TILE]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_sums, "LEAF", SMALL_LEAF)
        one_pass = measure_chunks(iter([array]), dtype, shape)
        parts = [part_of(array, dtype, shape, first, end, chunk) for first, end in pairwise(edges)]
        shuffled = [*parts, data.draw(st.sampled_from(parts))]
        random.Random(data.draw(st.integers(0, 9))).shuffle(shuffled)
        assert same(whole_of(shuffled, dtype, shape), one_pass)
        # Joined in two steps: what two workers handed to a third.
        middle = len(parts) // 2
        if middle:
            halves = [joined(parts[middle:]), joined(parts[:middle])]
            assert same(whole_of(halves, dtype, shape), one_pass)


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_compiled_or_not_a_cut_leaves_no_trace(monkeypatch: pytest.MonkeyPatch, compiled: str) -> None:
    if compiled == "1" and kernel._loops() is None:
        pytest.skip("numba is not installed")
    monkeypatch.setenv("INSPECTOR_COMPILED", compiled)
    monkeypatch.setattr(row_sums, "LEAF", SMALL_LEAF)
    shape = (2 * SMALL_LEAF // 5000 + 40, 5000)
    array = array_of("float32", shape[0] * shape[1], 2)
    one_pass = measure_chunks(iter([array]), "float32", shape)
    edges = [0, SMALL_LEAF, 2 * SMALL_LEAF, array.size]
    parts = [part_of(array, "float32", shape, a, b, TILE) for a, b in pairwise(edges)]
    assert same(whole_of(parts[::-1], "float32", shape), one_pass)
    # By another way: numpy's own sums over the rows and columns.
    table = np.abs(array.reshape(shape))
    assert one_pass.rows is not None
    np.testing.assert_allclose(np.frombuffer(one_pass.rows.total, np.float32), table.sum(1, dtype=float), rtol=1e-6)
    np.testing.assert_allclose(np.frombuffer(one_pass.rows.across, np.float32), table.sum(0, dtype=float), rtol=1e-6)
    assert np.array_equal(np.frombuffer(one_pass.rows.largest, np.float32), table.max(1))


def test_a_real_leaf_is_where_the_sums_begin_anew() -> None:
    shape = (LEAF // 5000 + 60, 5000)
    array = np.resize(array_of("bfloat16", 999_983, 2), shape[0] * shape[1])
    one_pass = measure_chunks(iter([array]), "bfloat16", shape)
    parts = [part_of(array, "bfloat16", shape, a, b, TILE) for a, b in pairwise([0, LEAF, array.size])]
    assert same(whole_of(parts, "bfloat16", shape), one_pass)


def test_a_gap_between_parts_is_refused() -> None:
    array = array_of("int8", 3 * TILE, 0)
    ends = [part_of(array, "int8", array.shape, first, first + TILE, TILE) for first in (0, 2 * TILE)]
    with pytest.raises(ValueError, match="do not follow"):
        joined(ends)
    with pytest.raises(ValueError, match="do not follow"):
        joined([])
