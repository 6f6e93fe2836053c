"""Sums, counts and places of a pair against numpy's float64, math.fsum and hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from inspector.compare import kernel
from inspector.compare.kernel import BLOCK, PairSums
from inspector.compare.numbers import Change, PairNumbers, add_up
from inspector.compare.report import Relation
from inspector.weights.moments import TILE
from tests.compare.files import bf16, compare_one

SUMS = ("sum_a", "sum_b", "square_a", "square_b", "square_delta", "dot")


@pytest.fixture(params=["0", "1"], ids=["numpy", "compiled"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "1" and kernel._loops() is None:
        pytest.skip("numba is not installed")
    monkeypatch.setenv("INSPECTOR_COMPILED", request.param)
    return str(request.param)


def measured(a: NDArray[np.generic], b: NDArray[np.generic], a_type: str = "", b_type: str = "") -> PairNumbers:
    sums = PairSums(a_type or a.dtype.name, b_type or b.dtype.name)
    for at in range(0, len(a), BLOCK):
        sums.add(a[at : at + BLOCK], b[at : at + BLOCK])
    return sums.result()


def test_by_hand(mode: str) -> None:
    a = np.array([1, -2, 0, 3, 4, -5], np.float32)
    b = np.array([1, 2, 1, 0, 4.5, -5], np.float32)
    found = measured(a, b)
    assert (found.n, found.finite, found.equal, found.zeroed, found.sign_flips) == (6, 6, 2, 1, 1)
    assert (found.sum_a, found.sum_b) == (1, 3.5)
    assert (found.square_a, found.square_b) == (55, 51.25)
    assert found.square_delta == 16 + 1 + 9 + 0.25
    assert found.dot == 1 - 4 + 18 + 25
    assert found.largest == Change(index=1, a=-2.0, b=2.0, size=4.0)
    assert (found.largest_zeroed, found.smallest_kept) == (3.0, 1.0)
    assert found.relative == pytest.approx(math.sqrt(26.25 / 55), rel=1e-15)
    assert found.cosine == pytest.approx(40 / math.sqrt(55 * 51.25), rel=1e-15)
    assert not found.rest_equal


def test_zeros_of_both_signs_are_equal_and_no_flip(mode: str) -> None:
    found = measured(np.array([0.0, -0.0, 1.0, -1.0], np.float32), np.array([-0.0, 0.0, -0.0, 0.0], np.float32))
    assert (found.equal, found.zeroed, found.sign_flips, found.rest_equal) == (2, 2, 0, True)
    assert (found.largest_zeroed, found.smallest_kept) == (1.0, None)


def test_what_is_not_finite_is_counted_and_in_no_sum(mode: str) -> None:
    nan, inf = math.nan, math.inf
    a = np.array([nan, nan, 1, inf, inf, -inf, 2], np.float32)
    b = np.array([nan, 1, nan, inf, -inf, 3, 5], np.float32)
    found = measured(a, b)
    assert (found.finite, found.equal, found.odd_equal, found.nan_both) == (1, 2, 2, 1)
    assert (found.nan_a, found.nan_b, found.infinite_a, found.infinite_b) == (2, 2, 3, 2)
    assert (found.square_a, found.square_b, found.square_delta, found.dot) == (4, 25, 9, 10)
    assert found.largest == Change(index=6, a=2.0, b=5.0, size=3.0)
    assert found.became_non_finite == -1


@pytest.mark.parametrize("size", [1, 511, 513, 2049, BLOCK + 1, TILE, TILE + BLOCK + 700])
def test_against_numpy_and_fsum(mode: str, size: int) -> None:
    rng = np.random.default_rng(size)
    a = rng.standard_normal(size).astype(np.float32)
    b = np.where(rng.random(size) < 0.3, 0, a + 0.01 * rng.standard_normal(size)).astype(np.float32)
    found, x, y = measured(a, b), a.astype(np.float64), b.astype(np.float64)
    size_ab = math.sqrt(math.fsum(x * x) * math.fsum(y * y)) or 1.0
    for name, exact in zip(SUMS, (x, y, x * x, y * y, (y - x) ** 2, x * y), strict=True):
        scale = {"dot": size_ab}.get(name, math.fsum(abs(exact))) or 1.0
        assert abs(getattr(found, name) - math.fsum(exact)) <= 1e-12 * scale, name
    gone, kept = (y == 0) & (x != 0), (y != 0) & (x != 0)
    assert found.equal == (x == y).sum()
    assert (found.zeroed, found.sign_flips) == (gone.sum(), (x * y < 0).sum())
    assert found.largest_zeroed == (np.abs(x[gone]).max() if gone.any() else None)
    assert found.smallest_kept == (np.abs(x[kept]).min() if kept.any() else None)
    at = int(np.abs(y - x).argmax())
    assert found.largest == (Change(index=at, a=x[at], b=y[at], size=abs(y[at] - x[at])) if y[at] != x[at] else None)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_compiled_and_numpy_give_the_same_bits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel._loops() is None:
        pytest.skip("numba is not installed")
    rng = np.random.default_rng(1)
    n = TILE + BLOCK + 1234
    a, b = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    b[::7], b[5::11] = a[::7], 0
    a[BLOCK + 5], b[TILE + 3] = math.nan, -math.inf
    # Also the smallest numbers that each type has.
    a[:40] = np.arange(40) * np.float32(2**-24)
    raw = {"bfloat16": bf16, "float16": lambda v: v.astype(np.float16), "float32": lambda v: v}[kind]
    found = []
    for wanted in ("0", "1"):
        monkeypatch.setenv("INSPECTOR_COMPILED", wanted)
        found.append(repr(measured(raw(a), raw(b), kind, kind)))
    assert found[0] == found[1]


@pytest.mark.parametrize("pattern", [range(1 << 16)], ids=["every half"])
def test_every_half_is_widened_as_numpy_does(pattern: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finite pattern beside zero, alone in its column sums: sum and extremes name its value."""
    loops = kernel._loops()
    if loops is None:
        pytest.skip("numba is not installed")
    raw = np.array(pattern, np.uint16)
    raw = raw[np.isfinite(raw.view(np.float16))]
    out = np.empty(len(raw), np.uint32)
    loops._widen(raw, False, out)
    assert (out == raw.view(np.float16).astype(np.float32).view(np.uint32)).all()


def test_any_cut_gives_the_same_bytes(tmp_path: Path, seeds: Callable[..., range]) -> None:
    """How the reader cuts the bytes must not show: reads of random lengths against one of all."""
    from inspector.compare.pair import blocks
    from inspector.weights.decoded.types import Decoded

    rng = np.random.default_rng(0)
    n = TILE + 5000
    a, b = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    whole = measured(a, b)
    for seed in seeds(3, full=100):
        own = np.random.default_rng(seed)
        sums = PairSums("float32", "float32")
        cuts = [np.sort(own.integers(0, n, own.integers(1, 60))) for _ in range(2)]
        sides = [
            Decoded(dtype="float32", shape=(n,), chunks=np.split(x, cut)) for x, cut in zip((a, b), cuts, strict=True)
        ]
        for x, y in zip(*map(blocks, sides), strict=True):
            sums.add(x, y)
        assert repr(sums.result()) == repr(whole)


def test_a_chunk_that_is_written_over_is_not_kept() -> None:
    from inspector.compare.pair import blocks
    from inspector.weights.decoded.types import Decoded

    def again() -> object:
        held = np.empty(1000, np.float32)
        for number in range(300):
            held[:] = number
            yield held

    got = np.concatenate([x.copy() for x in blocks(Decoded(dtype="float32", shape=(300_000,), chunks=again()))])
    assert (got == np.repeat(np.arange(300, dtype=np.float32), 1000)).all()


def test_integers_are_told_apart_before_they_are_rounded() -> None:
    a = np.array([2**53, 5, -7], np.int64)
    b = np.array([2**53 + 1, 5, 7], np.int64)
    found = measured(a, b)
    assert (found.equal, found.sign_flips) == (1, 1)
    assert found.largest == Change(index=2, a=-7.0, b=7.0, size=14.0)


def test_too_large_to_be_squared_is_infinite_and_not_an_error() -> None:
    found = measured(np.array([1e300, 1.0]), np.array([-1e300, 1.0]))
    assert found.square_a == math.inf
    assert math.isnan(found.relative)
    assert found.cosine is None
    assert found.largest is not None
    assert found.largest.size == 2e300


def test_centred_cosine_takes_the_mean_off() -> None:
    x = np.array([10, 11, 12, 13], np.float64)
    found = measured(x, np.array([13, 12, 11, 10], np.float64))
    assert found.centred_cosine == pytest.approx(-1.0, abs=1e-12)
    assert measured(np.full(4, 3.0), x).centred_cosine is None


def test_parts_add_up() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 3000))
    b[7] = 0
    whole = measured(a, b)
    added = add_up([measured(a[:1000], b[:1000]), measured(a[1000:], b[1000:])])
    assert (added.n, added.equal, added.zeroed, added.sign_flips) == (
        whole.n, whole.equal, whole.zeroed, whole.sign_flips,
    )  # fmt: skip
    assert added.square_delta == pytest.approx(whole.square_delta, rel=1e-14)
    assert (added.largest_zeroed, added.smallest_kept) == (whole.largest_zeroed, whole.smallest_kept)
    assert added.largest is None


def test_the_place_of_a_change() -> None:
    change = Change(index=23, a=0.0, b=1.0, size=1.0)
    assert change.place((2, 3, 4)) == (1, 2, 3)
    assert change.place((24,)) == (23,)
    assert Change(index=0, a=0.0, b=1.0, size=1.0).place(()) == ()


def test_a_file_of_complex_numbers_counts_their_parts(tmp_path: Path) -> None:
    found = compare_one(tmp_path, np.array([1 + 2j, 3 - 1j], np.complex64), np.array([1 + 2j, 3 + 1j], np.complex64))
    assert (found.relation, found.parts) == (Relation.CHANGED, 2)
    assert found.numbers is not None
    assert (found.numbers.n, found.numbers.equal, found.numbers.square_a, found.numbers.square_delta) == (4, 3, 15, 4)
