"""Casts against torch's own, on every kind of number: rounded, cut off, widened."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspector.compare.casts import CastCheck, rounded, truncated
from inspector.compare.report import Relation
from tests.compare.files import bf16, compare_one

FLOATS = ("float64", "float32", "float16", "bfloat16")
EIGHT = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
CODE = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


def numbers() -> torch.Tensor:
    """Ordinary ones, ties, ends of the ranges, the smallest, and what is none."""
    torch.manual_seed(0)
    edges = [0.0, -0.0, 1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-9, 1 + 2**-11, 65504.0, 65519.0, 65520.0, 1e38, 3.4e38]
    edges += [448.0, 464.0, 465.0, 480.0, 57344.0, 61440.0, 1e6, 2**-24, 2**-25, 2**-26, 2**-9, 2**-10, 1e-40, 2**-149]
    edges += [math.inf, -math.inf, math.nan, 0.5, 2.5, -3.5, -(2**-10)]
    scale = 10.0 ** torch.arange(-8, 8).double()
    return torch.cat([torch.tensor(edges).double(), (torch.randn(500, 1).double() * scale).flatten()])


def raw(tensor: torch.Tensor, dtype: str) -> NDArray[np.generic]:
    kind = {1: torch.uint8, 2: torch.int16}.get(tensor.element_size()) if dtype not in FLOATS[:3] else None
    if kind is None:
        return tensor.numpy()
    return tensor.view(kind).numpy().view(np.uint8 if kind is torch.uint8 else np.uint16)


def same(one: NDArray[np.generic], two: NDArray[np.generic]) -> bool:
    one, two = one.astype(np.float64), two.astype(np.float64)
    return bool((((one == two) & (np.signbit(one) == np.signbit(two))) | (np.isnan(one) & np.isnan(two))).all())


@pytest.mark.parametrize("wanted", [*FLOATS, *EIGHT])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rounded_as_torch_rounds(dtype: str, wanted: str) -> None:
    held = numbers().to(getattr(torch, dtype))
    if dtype == "float64" and wanted in EIGHT:
        held = held.float().double()  # torch goes by way of float32, which is another rounding.
    made = rounded(raw(held, dtype), dtype, wanted)
    assert same(made, held.to(getattr(torch, wanted)).double().numpy())


@pytest.mark.parametrize("wanted", ["float32", "float16", "bfloat16", *EIGHT])
def test_cut_off_is_the_next_towards_zero(wanted: str) -> None:
    held = numbers()
    held = held[held.isfinite() & (held.abs() < 200)].float()
    made = truncated(held.numpy(), "float32", wanted).astype(np.float64)
    own = held.double().numpy()
    assert (np.abs(made) <= np.abs(own)).all()
    nearest = held.to(getattr(torch, wanted)).double().numpy()
    # Where rounding went towards zero it is the same; else one step less.
    towards = np.abs(nearest) <= np.abs(own)
    assert (made[towards] == nearest[towards]).all()
    assert (np.abs(made[~towards]) < np.abs(nearest[~towards])).all()
    assert same(truncated(made.astype(np.float32), "float32", wanted), made.astype(np.float32))


def test_truncated_bfloat16_is_the_upper_half() -> None:
    held = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    assert (truncated(held, "float32", "bfloat16").view(np.uint32) >> 16 == held.view(np.uint32) >> 16).all()


@pytest.mark.parametrize("wanted", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_rounded_copy_is_a_cast(tmp_path: Path, wanted: str) -> None:
    torch.manual_seed(1)
    held = torch.randn(300)
    made = raw(held.to(getattr(torch, wanted)), wanted)
    other = (CODE[wanted], made) if wanted in CODE else made
    found = compare_one(tmp_path, held.numpy(), other)
    assert (found.relation, found.note) == (Relation.CAST, f"rounded to the nearest {wanted}")
    back = compare_one(tmp_path, other, held.numpy())
    assert (back.relation, back.note) == (Relation.CAST, f"the first is the second rounded to the nearest {wanted}")
    assert found.numbers is not None
    assert found.numbers.relative > 0


def test_cut_off_is_truncated_and_no_cast(tmp_path: Path) -> None:
    held = np.random.default_rng(2).standard_normal(300).astype(np.float32)
    found = compare_one(tmp_path, held, ("BF16", bf16(held)))
    assert (found.relation, found.note) == (Relation.TRUNCATED, "low bits cut off to bfloat16, not rounded")


def test_widened_exactly_is_a_cast(tmp_path: Path) -> None:
    held = np.random.default_rng(2).standard_normal(300).astype(np.float16)
    for a, b in ((held, held.astype(np.float32)), (held.astype(np.float64), held)):
        found = compare_one(tmp_path, a, b)
        assert (found.relation, found.note) == (Relation.CAST, "every number as it was")


def test_one_element_off_is_no_cast(tmp_path: Path) -> None:
    held = np.random.default_rng(2).standard_normal(300).astype(np.float32)
    made = held.astype(np.float16)
    made.view(np.uint16)[123] += 1
    found = compare_one(tmp_path, held, made)
    assert found.relation is Relation.CHANGED
    assert found.note == "in another type, and not by a cast alone"


def test_integers_and_floats_with_the_same_numbers(tmp_path: Path) -> None:
    found = compare_one(tmp_path, np.arange(10), np.arange(10, dtype=np.float32))
    assert (found.relation, found.note) == (Relation.CAST, "every number as it was")
    other = compare_one(tmp_path, np.array([1.5, 2.5], np.float32), np.array([1, 2], np.int32))
    assert other.relation is Relation.CHANGED


def test_a_nan_of_an_older_torch_counts_as_its_cast() -> None:
    held = np.array([1.0, 500.0, -1e6], np.float32)
    for code in (0x7E, 0x7F):  # 448, the largest, and the NaN.
        check = CastCheck("float32", "float8_e4m3fn")
        check.add(held, np.array([0x38, code, code | 0x80], np.uint8))
        assert check.rounded, code
    check = CastCheck("float32", "float8_e4m3fn")
    check.add(held[:1], np.array([0x7F], np.uint8))
    assert not check.rounded


def test_a_check_holds_of_all_pieces() -> None:
    a = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    check = CastCheck("float32", "float16")
    check.add(a, a.astype(np.float16))
    assert check.rounded
    check.add(a, (a * 2).astype(np.float16))
    assert not check.rounded
    assert not check.cut
