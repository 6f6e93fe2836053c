"""The engine: the same bits for any cut, any number of threads, compiled or not; rows, pages, shorter types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.weights import kernel
from inspector.weights.measure import code_values, measure_chunks, measure_weights
from inspector.weights.moments import TILE
from inspector.weights.parts import Numbers
from inspector.weights.report import PAGE, Rows
from inspector.weights.rows import column_means, row_largest, row_means
from tests.weights.test_measure import Builder

F32 = np.float32


def cut(array: NDArray[Any], rng: np.random.Generator) -> Iterator[NDArray[Any]]:
    """Pieces of random sizes, some longer than a tile."""
    flat, at = array.reshape(-1), 0
    while at < flat.size:
        n = int(rng.choice([1, 7, 511, 4096, 65_537, TILE, TILE + 3, 3 * TILE]))
        yield flat[at : at + n]
        at += n


def measured(array: NDArray[Any], dtype: str = "", chunks: Iterator[NDArray[Any]] | None = None) -> Numbers:
    name = dtype or array.dtype.name
    return measure_chunks([array.reshape(-1)] if chunks is None else chunks, name, array.shape)


def awkward() -> dict[str, NDArray[Any]]:
    """What the loops could get wrong."""
    rng = np.random.default_rng(0)
    normal = (rng.standard_normal(2 * TILE + 777) * 0.02).astype(F32)
    odd = normal.copy()
    odd[::97], odd[5::1013] = np.nan, -np.inf
    return {
        "normal": normal,
        "odd": odd,
        "rows": normal[: 700 * 501].reshape(700, 501),
        "odd rows": odd[: 300 * 1300].reshape(300, 1300),
        "long rows": normal[: 2 * (TILE - 5)].reshape(2, TILE - 5),
        "kernels": normal[: 64 * 33 * 9].reshape(64, 33, 3, 3),
        "short": normal[:700],
        "nothing finite": np.full(3000, np.nan, F32),
        "negative zeros": np.full(3000, -0.0, F32),
        "subnormal": (rng.standard_normal(70_000) * 1e-42).astype(F32),
        "huge": (rng.standard_normal(70_000) * 1e37).astype(F32),
        "signalling": np.array([0x7F800001, 0xFF800001, 0x7F800000] * 3000, np.uint32).view(F32),
        "double": rng.standard_normal(70_000),
        "half": rng.standard_normal((300, 300)).astype(np.float16),
        "counts": rng.integers(-(2**60), 2**60, 70_000),
        "bytes": rng.integers(0, 256, 70_000).astype(np.uint8),
        "rows of one": normal[:9000].reshape(9000, 1),
        "all halves": np.arange(1 << 16, dtype=np.uint16).view(np.float16),
        "finite halves": rng.integers(0, 0x7C00, (300, 300)).astype(np.uint16).view(np.float16),
    }


def short_bits() -> dict[str, tuple[str, NDArray[Any]]]:
    """The same in types that numpy lacks: their name, their bits."""
    rng = np.random.default_rng(3)
    upper = ((rng.standard_normal((700, 1023)) * 0.02).astype(F32).view(np.uint32) >> 16).astype(np.uint16)
    odd = upper.copy()
    odd[::7, 5], odd[3::50, 900] = 0x7FC1, 0xFF80
    return {
        "bfloat16": ("bfloat16", upper),
        "bfloat16, odd": ("bfloat16", odd),
        "bfloat16, all": ("bfloat16", np.arange(1 << 16, dtype=np.uint16)),
        "bfloat16, negative": ("bfloat16", upper | np.uint16(0x8000)),
        "bfloat16, zeros": ("bfloat16", np.full(3000, 0x8000, np.uint16)),
        "float8": ("float8_e4m3fn", rng.integers(0, 256, (300, 700)).astype(np.uint8)),
        "float8, finite": ("float8_e5m2", rng.integers(0, 0x7C, (300, 700)).astype(np.uint8)),
    }


@pytest.mark.parametrize("name", awkward())
def test_any_cut_gives_the_same_bits(name: str, seeds: Any) -> None:
    array = awkward()[name]
    whole = repr(measured(array))
    for seed in seeds(2, full=40):
        assert repr(measured(array, chunks=cut(array, np.random.default_rng(seed)))) == whole


@pytest.mark.parametrize("name", awkward())
def test_compiled_or_not_the_bits_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    array = awkward()[name]
    monkeypatch.setenv("INSPECTOR_COMPILED", "0")
    assert kernel.compiled() is None
    plain = repr(measured(array))
    monkeypatch.setenv("INSPECTOR_COMPILED", "1")
    assert kernel.compiled() is not None
    assert repr(measured(array)) == plain


@pytest.mark.parametrize("name", short_bits())
def test_types_that_numpy_lacks_give_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch, seeds: Any) -> None:
    pytest.importorskip("numba")
    dtype, bits = short_bits()[name]
    monkeypatch.setenv("INSPECTOR_COMPILED", "0")
    plain = repr(measured(bits, dtype))
    for seed in seeds(1, full=10):
        assert repr(measured(bits, dtype, cut(bits, np.random.default_rng(seed)))) == plain
    monkeypatch.setenv("INSPECTOR_COMPILED", "1")
    assert repr(measured(bits, dtype)) == plain
    # By the values themselves, which float32 holds.
    values = code_values(dtype)
    assert values is not None
    exact = values[bits]
    own, finite = measured(bits, dtype), exact[np.isfinite(exact)]
    assert (own.nan, own.infinite) == (int(np.isnan(exact).sum()), int(np.isinf(exact).sum()))
    assert (own.zero, own.minimum, own.maximum) == (int((exact == 0).sum()), finite.min(), finite.max())


def test_without_being_asked_the_loops_are_fetched_for_large_files_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INSPECTOR_COMPILED", raising=False)
    monkeypatch.setattr(kernel, "_expected", 0)
    fetched: list[int] = []
    monkeypatch.setattr(kernel, "_loops", lambda: fetched.append(1))
    kernel.expect(1000)
    kernel.compiled()
    assert fetched == []
    kernel.expect(300 << 20)
    kernel.compiled()
    assert fetched == [1]


def test_threads_do_not_change_the_report() -> None:
    b = Builder()
    rng = np.random.default_rng(1)
    for n in range(9):
        b.add(f"layer.{n}.weight", rng.standard_normal((50, 700)).astype(F32))
    b.add("meta", np.ones(4, F32), storage_id=None, note="meta tensor: no data")
    told: list[tuple[int, int | None, str]] = []
    one = measure_weights(b.checkpoint())
    two = measure_weights(b.checkpoint(), workers=3, progress=lambda *call: told.append(call))
    assert repr(two.tensors) == repr(one.tensors)
    assert two.skipped == one.skipped
    assert told[-1] == (9 * 50 * 700 * 4 + 16, 9 * 50 * 700 * 4 + 16, "done")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shift", [0.0, 1.0, 1000.0])
def test_sums_are_those_of_fsum(dtype: str, shift: float) -> None:
    rng = np.random.default_rng(2)
    values = (rng.standard_normal(TILE + 12_345) + shift).astype(dtype)
    exact = [float(v) for v in values]
    found = measured(values)
    size = math.fsum(map(abs, exact))
    assert abs(found.mean * len(exact) - math.fsum(exact)) <= 1e-12 * size
    squares = math.fsum(v * v for v in exact)
    assert abs(found.rms**2 * len(exact) / squares - 1) <= 1e-12
    mean = math.fsum(exact) / len(exact)
    spread = math.fsum((v - mean) ** 2 for v in exact)
    assert abs(found.std**2 * len(exact) / spread - 1) <= 1e-11


def rows_of(numbers: Numbers) -> Rows:
    assert numbers.rows is not None
    return numbers.rows


@pytest.mark.parametrize("shape", [(5, 3), (300, 1300), (7, 90_001), (3000, 16), (64, 33, 3, 3), (1, 5), (5, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_rows_and_columns(shape: tuple[int, ...], dtype: str) -> None:
    array = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    sizes = np.abs(array.astype(np.float64))
    rows = rows_of(measured(array))
    assert (rows.count, rows.length, rows.columns) == (shape[0], math.prod(shape[1:]), shape[1])
    np.testing.assert_array_equal(row_largest(rows), sizes.reshape(shape[0], -1).max(axis=1).astype(F32))
    np.testing.assert_allclose(row_means(rows), sizes.reshape(shape[0], -1).mean(axis=1), rtol=1e-6)
    axes = tuple(axis for axis in range(len(shape)) if axis != 1)
    np.testing.assert_allclose(column_means(rows), sizes.mean(axis=axes), rtol=1e-5)


def test_a_row_with_a_nan_is_infinite_and_its_mean_that_of_the_rest() -> None:
    array = np.array([[1, -2, 3], [np.nan, 4, -4], [0, 0, 0], [5e-46, 0, 0]], np.float64)
    rows = rows_of(measured(array))
    assert row_largest(rows)[:3].tolist() == [3.0, np.inf, 0.0]
    assert row_largest(rows)[3] > 0  # Below float32's smallest number, and yet not zero.
    assert row_means(rows)[:3].tolist() == pytest.approx([2.0, 8 / 3, 0.0])


def test_what_has_no_rows() -> None:
    assert measured(np.ones(5, F32)).rows is None
    assert measured(np.ones((5, 0), F32)).rows is None
    assert measured(np.ones((5, 5), np.int64)).rows is None
    assert measured(np.ones((1, (1 << 21) + 1), F32)).rows is None


def test_short_tensors_are_kept_whole() -> None:
    array = np.array([1.5, np.nan, -3.0], F32)
    np.testing.assert_array_equal(np.frombuffer(measured(array).values, np.float64), array)
    assert np.frombuffer(measured(np.array([7], np.int64)).values).tolist() == [7.0]
    assert measured(np.ones((1 << 16) + 1, F32)).values == b""
    assert measured(np.ones((2, 2), F32)).values == b""


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        (np.arange(300, dtype=F32), "float16"),
        (np.arange(256, dtype=F32), "bfloat16"),
        (np.array([1e30, 1.0], F32), ""),
        (np.array([2.0**100, np.nan, np.inf], F32), "bfloat16"),
        (np.array([1 + 2**-10, 3], F32), "float16"),
        (np.array([1 + 2**-10, 70_000], F32), ""),
        (np.array([0.1], np.float64), ""),
        (np.array([0.1], F32).astype(np.float64), "float32"),
        (np.array([1], np.int64), ""),
        (np.array([1], np.float16), ""),
        (np.empty(0, F32), ""),
    ],
)
def test_the_shortest_type_that_holds_all(values: NDArray[Any], fits: str) -> None:
    assert measured(values).fits == fits
    # One element that it does not hold, far behind.
    if values.dtype == F32 and values.size and fits:
        assert measured(np.append(np.tile(values, 2000), F32(0.1))).fits == ""


def test_distinct_values() -> None:
    rng = np.random.default_rng(4)
    steps = (rng.integers(-8, 8, TILE + 100) * F32(0.013)).astype(F32)
    assert measured(steps).distinct == 16
    assert measured(rng.standard_normal(5000).astype(F32)).distinct is None
    assert measured(rng.standard_normal(100).astype(F32)).distinct == 100
    assert measured(np.array([0.0, -0.0, np.nan, 1.0], F32)).distinct == 2
    assert measured(steps.astype(np.float16)).distinct == 16


def test_groups_of_four() -> None:
    pruned = np.tile(np.array([0, 0, 1, 2], F32), 3000)
    assert measured(pruned).fours == 3000
    assert measured(np.tile(np.array([0, 1, 1, 2], F32), 3000)).fours == 0
    assert measured(np.ones(4000, F32)).fours == 0


@pytest.mark.parametrize("dtype, kind", [("bfloat16", np.uint16), ("float8_e4m3fn", np.uint8)])
def test_random_pages_of_short_elements_are_not_taken_for_copies(dtype: str, kind: type) -> None:
    # Sums and exclusive ors of single elements of few bits agree by chance: 28,941 of 131,072 pages of float8 did.
    normal = (np.random.default_rng(4).standard_normal(1 << 23) * 0.02).astype(F32).view(np.uint32)
    bits = (normal >> (16 if kind is np.uint16 else 24)).astype(kind)
    assert measured(bits, dtype).pages.repeated == 0
    bits[40 * PAGE : 50 * PAGE] = bits[7 * PAGE : 17 * PAGE]
    pages = measured(bits, dtype).pages
    assert (pages.repeated, pages.repeated_at, pages.repeated_from) == (10, 40, 7)


def test_zeroed_and_repeated_pages() -> None:
    values = np.random.default_rng(5).standard_normal(40 * PAGE + 9).astype(F32)
    assert (measured(values).pages.zero, measured(values).pages.repeated, measured(values).pages.count) == (0, 0, 40)
    values[3 * PAGE : 6 * PAGE] = 0
    values[20 * PAGE : 30 * PAGE] = values[8 * PAGE : 18 * PAGE]
    pages = measured(values).pages
    assert (pages.zero, pages.zero_run, pages.zero_at) == (3, 3, 3)
    assert (pages.repeated, pages.repeated_run, pages.repeated_at, pages.repeated_from) == (10, 10, 20, 8)


def test_a_constant_repeats_nothing() -> None:
    assert measured(np.ones(10 * PAGE, F32)).pages.repeated == 0
    assert measured(np.zeros(10 * PAGE, F32)).pages.zero == 10
