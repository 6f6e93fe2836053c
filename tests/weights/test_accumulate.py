"""Statistics from chunks: against numpy in float64, against torch's own conversions, and whatever the chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from inspector.weights.measure import code_values, measure_chunks
from inspector.weights.moments import Moments
from inspector.weights.parts import Numbers


def chunked(array: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    flat = array.reshape(-1)
    return (flat[at : at + size] for at in range(0, flat.size, size))


def measured(array: NDArray[Any], dtype: str = "", *, size: int = 1000) -> Numbers:
    return measure_chunks(chunked(array, size), dtype or array.dtype.name, array.shape)


def check_against_numpy(numbers: Numbers, values: NDArray[np.float64]) -> None:
    """values: what the elements mean, exactly, in float64."""
    finite = values[np.isfinite(values)]
    odd = np.flatnonzero(~np.isfinite(values))
    assert numbers.numel == values.size
    assert numbers.nan == np.isnan(values).sum()
    assert numbers.infinite == np.isinf(values).sum()
    assert numbers.zero == (values == 0).sum()
    assert numbers.first_non_finite == (int(odd[0]) if odd.size else None)
    assert sum(count for _, count in numbers.table) == values.size
    if not finite.size:
        assert all(math.isnan(v) for v in (numbers.minimum, numbers.maximum, numbers.mean, numbers.std, numbers.rms))
        return
    # Below 1e-150 squares leave the normal range of float64.
    near = max(1e-12 * float(np.abs(finite).max()), 1e-150)
    assert numbers.minimum == finite.min()
    assert numbers.maximum == finite.max()
    assert numbers.mean == pytest.approx(finite.mean(), rel=1e-12, abs=near)
    assert numbers.std == pytest.approx(finite.std(), rel=1e-10, abs=near)
    assert numbers.rms == pytest.approx(np.sqrt(np.mean(np.square(finite))), rel=1e-12, abs=near)


def torch_table(values: torch.Tensor) -> dict[int, int]:
    """The value table by torch: the bits of the float32 values, cut to 16."""
    bits = values.float().contiguous().view(torch.int32).numpy().view(np.uint32) >> 16
    codes, counts = np.unique(bits, return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def test_hand_computed() -> None:
    numbers = measured(np.array([[1.0, -3.0], [0.0, 6.0]], np.float32))
    assert (numbers.minimum, numbers.maximum, numbers.mean, numbers.zero) == (-3.0, 6.0, 1.0, 1)
    assert numbers.std == pytest.approx(math.sqrt((0 + 16 + 1 + 25) / 4), rel=1e-15)
    assert numbers.rms == pytest.approx(math.sqrt(46 / 4), rel=1e-15)
    # 1.0 = 0x3f800000, -3.0 = 0xc0400000, 6.0 = 0x40c00000.
    assert list(numbers.table) == [(0x0000, 1), (0x3F80, 1), (0x40C0, 1), (0xC040, 1)]


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=40),
        elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
    ),
    st.integers(1, 50),
)
def test_any_float32_array_in_any_chunks(array: NDArray[np.float32], size: int) -> None:
    check_against_numpy(measured(array, "float32", size=size), array.reshape(-1).astype(np.float64))


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(0, 60), elements=st.floats(min_value=-1e150, max_value=1e150)),
    st.integers(1, 50),
)
def test_any_float64_array_in_any_chunks(array: NDArray[np.float64], size: int) -> None:
    check_against_numpy(measured(array, size=size), array)


@settings(deadline=None)
@given(hnp.arrays(np.float16, st.integers(0, 60), elements=st.floats(width=16)), st.integers(1, 50))
def test_any_float16_array_in_any_chunks(array: NDArray[np.float16], size: int) -> None:
    check_against_numpy(measured(array, size=size), array.astype(np.float64))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"])
def test_integers(dtype: str) -> None:
    rng = np.random.default_rng(0)
    top = 2 if dtype == "bool" else min(int(np.iinfo(dtype).max), 2**40)
    array = rng.integers(0, top, 3000).astype(dtype)
    check_against_numpy(measured(array), array.astype(np.float64))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_short_floats_are_exact_against_torch(name: str) -> None:
    raw = np.random.default_rng(1).integers(0, 1 << 16 if name == "bfloat16" else 256, 20_000)
    raw = raw.astype(np.uint16 if name == "bfloat16" else np.uint8)
    values = torch.from_numpy(raw).view(getattr(torch, name))
    numbers = measured(raw, name)
    with np.errstate(over="ignore"):
        check_against_numpy(numbers, values.double().numpy())
    finite = values.float()[torch.isfinite(values.float())]
    ours = {code: count for code, count in numbers.table if (code & 0x7F80) != 0x7F80}
    assert ours == torch_table(finite)


def test_every_bit_pattern_of_short_floats_means_what_torch_says() -> None:
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"):
        values = code_values(name)
        assert values is not None
        codes = torch.arange(len(values)).to(torch.uint16 if len(values) > 256 else torch.uint8)
        np.testing.assert_array_equal(values, codes.view(getattr(torch, name)).double().numpy())
    assert code_values("float32") is None


def test_the_table_of_half_floats_has_their_own_bit_patterns() -> None:
    array = np.random.default_rng(2).standard_normal(5000).astype(np.float16)
    found = measured(array).table
    codes, counts = np.unique(array.view(np.uint16), return_counts=True)
    assert (found.of, dict(found)) == ("float16", dict(zip(codes.tolist(), counts.tolist(), strict=True)))


def test_spread_beside_a_huge_mean() -> None:
    array = np.random.default_rng(3).normal(1e4, 1e-3, 300_000).astype(np.float32)
    exact = array.astype(np.longdouble)
    std = float(np.sqrt(np.mean((exact - exact.mean()) ** 2)))
    for size in (1000, 262_144):
        assert measured(array, size=size).std == pytest.approx(std, rel=1e-6)
    # What a sum of squares would give, so that this test is known to be able to fail.
    naive = np.mean(np.square(array.astype(np.float64))) - np.mean(array, dtype=np.float64) ** 2
    assert abs(math.sqrt(abs(naive)) / std - 1) > 1e-6


def test_chunks_do_not_change_the_answer() -> None:
    array = np.random.default_rng(4).standard_normal(50_000).astype(np.float32)
    array[31_337] = np.nan
    whole = measured(array, size=array.size)
    for size in (1, 7, 4096, 49_999):
        if size == 1:
            part, expected = measured(array[:2000], size=1), measured(array[:2000], size=2000)
        else:
            part, expected = measured(array, size=size), whole
        assert part.table == expected.table
        assert (part.minimum, part.maximum, part.zero, part.nan) == (
            expected.minimum,
            expected.maximum,
            expected.zero,
            expected.nan,
        )
        assert part.first_non_finite == expected.first_non_finite
        assert part.mean == pytest.approx(expected.mean, rel=1e-12, abs=1e-15)
        assert part.std == pytest.approx(expected.std, rel=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("at", [5, 8191, 8192, 29_999])
def test_the_first_odd_element_is_found_wherever_it_is(dtype: str, at: int) -> None:
    array = np.ones(30_000, dtype)
    array[at:] = np.inf
    numbers = measured(array, size=4000)
    assert (numbers.first_non_finite, numbers.infinite, numbers.zero) == (at, 30_000 - at, 0)


def test_a_nan_that_looks_like_infinity_in_its_top_bits_stays_a_nan() -> None:
    array = np.array([0x7F800001, 0xFF800001, 0x7F800000, 0x3F800000], np.uint32).view(np.float32)
    numbers = measured(array)
    assert (numbers.nan, numbers.infinite, numbers.first_non_finite) == (2, 1, 0)
    assert dict(numbers.table) == {0x3F80: 1, 0x7F80: 1, 0x7FC0: 1, 0xFFC0: 1}


@pytest.mark.parametrize("times", [1, 10_000])
def test_the_smallest_subnormals_are_not_zero(times: int) -> None:
    tiny = np.array([1, 0x80000001, 0, 0x80000000], np.uint32).view(np.float32)
    numbers = measured(np.tile(tiny, times), size=20_000)
    assert numbers.zero == 2 * times
    assert dict(numbers.table) == {0x0000: 2 * times, 0x8000: 2 * times}


def test_zeros_of_either_sign_are_counted_apart_from_each_other() -> None:
    for zero in (0.0, -0.0):
        array = np.ones(30_000, np.float32)
        array[20_000:] = zero
        assert measured(array, size=10_000).zero == 10_000


def test_float64_beyond_float32_stays_finite_in_the_table() -> None:
    numbers = measured(np.array([1e300, -1e300, 1.0, np.inf]))
    assert (numbers.minimum, numbers.maximum, numbers.infinite) == (-1e300, 1e300, 1)
    assert dict(numbers.table) == {0x3F80: 1, 0x7F7F: 1, 0x7F80: 1, 0xFF7F: 1}


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-6, 1e30, -0.7])
def test_a_constant_has_no_spread_at_all(value: float) -> None:
    numbers = measured(np.full(99_991, value), size=10_007)
    assert (numbers.std, numbers.mean, numbers.rms) == (0.0, value, abs(value))


def test_nothing_and_nothing_finite() -> None:
    check_against_numpy(measured(np.empty(0, np.float32)), np.empty(0))
    check_against_numpy(measured(np.full(5, np.nan, np.float32)), np.full(5, np.nan))
    check_against_numpy(measured(np.empty(0, np.float16)), np.empty(0))
    assert len(measured(np.empty((3, 0), np.float32)).table) == 0


def test_moments_merge_in_any_order() -> None:
    a, b, c = Moments(3, 10.0, 2.0), Moments(5, -4.0, 1.0), Moments()
    left, right = a.merged(b).merged(c), c.merged(b).merged(a)
    assert (left.count, left.mean) == (8, pytest.approx((30 - 20) / 8))
    assert left.spread == pytest.approx(right.spread) == pytest.approx(3.0 + 14.0**2 * 3 * 5 / 8)
