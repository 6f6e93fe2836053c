"""Every cast gives torch's own bits: all patterns of the small types, dense samples and ties of the large ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspector.checkpoint.casts import cast, common_type, numbers_of
from inspector.checkpoint.raw_tensor import bare_tensor, join
from inspector.checkpoint.torch_bridge import raw_of, tensor_of
from inspector.errors import ReadError

WANTED = ("float32", "float16", "bfloat16", "float64")
EIGHTS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


def agrees(held: torch.Tensor, wanted: str) -> None:
    """Bit for bit, but for what a NaN carries: torch's own differ between processors and places in a tensor."""
    ours = tensor_of(raw_of(held).cast(wanted))
    theirs = held.to(getattr(torch, wanted))
    nan = theirs.isnan()
    assert torch.equal(ours.isnan(), nan)
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[theirs.itemsize]
    assert torch.equal(ours.view(whole)[~nan], theirs.view(whole)[~nan])


def patterns(dtype: str, numbers: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(numbers.view(f"i{numbers.itemsize}")).view(getattr(torch, dtype))


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_patterns_of_16_bits(dtype, wanted):
    agrees(patterns(dtype, np.arange(1 << 16, dtype=np.uint16)), wanted)


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("dtype", EIGHTS)
def test_all_patterns_of_8_bits(dtype, wanted):
    agrees(patterns(dtype, np.arange(256, dtype=np.uint8)), wanted)


@pytest.mark.parametrize("wanted", WANTED)
def test_float32_by_its_upper_half_and_what_lies_about_each_tie(wanted, thorough):
    """Every upper half with lower halves about those that decide: a tie of bfloat16, and of float16 in 13 bits."""
    upper = np.arange(1 << 16, dtype=np.uint32)[:, None] << np.uint32(16)
    lower = [0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    lower += list(range(0, 1 << 16, 37)) if thorough else []
    agrees(patterns("float32", (upper | np.array(lower, np.uint32)).reshape(-1)), wanted)
    chance = np.random.default_rng(0)
    agrees(patterns("float32", chance.integers(0, 1 << 32, 300_000, dtype=np.uint32)), wanted)


@pytest.mark.parametrize("wanted", WANTED)
def test_float64_goes_by_way_of_float32(wanted):
    chance = np.random.default_rng(1)
    agrees(patterns("float64", chance.integers(0, 1 << 64, 300_000, dtype=np.uint64)), wanted)
    small = chance.standard_normal(200_000) * 10.0 ** chance.integers(-46, 40, 200_000)
    # On a tie of the smaller type, and a little beside it: rounding twice shows here.
    ties = patterns("float16", np.arange(1 << 16, dtype=np.uint16)).double() * (1 + 2.0**-11)
    for held in (torch.from_numpy(small), ties, ties * (1 + 2.0**-40), ties * (1 - 2.0**-40)):
        agrees(held, wanted)


def test_one_nan_is_always_the_same():
    nan = np.array([0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF], np.uint32).view(np.float32)
    for held in (nan, np.repeat(nan, 40)):
        assert set(cast(held, "float32", "bfloat16").tolist()) == {0x7FC0}
        halves = cast(held, "float32", "float16").view(np.uint16)
        assert np.isnan(halves.view(np.float16)).all() and set((halves & 0x0200).tolist()) == {0x0200}


def test_what_has_no_numbers_is_refused():
    with pytest.raises(ReadError, match="Elements of type float4_e2m1fn_x2 are no single numbers"):
        numbers_of(np.zeros(2, np.uint8), "float4_e2m1fn_x2")
    with pytest.raises(ReadError, match="Nothing is cast to float8_e4m3fn here"):
        cast(np.zeros(2, np.float32), "float32", "float8_e4m3fn")


@pytest.mark.parametrize("one", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("other", ["float64", "float32", "float16", "bfloat16"])
def test_tensors_are_joined_in_the_type_in_which_torch_joins_them(one, other):
    parts = [torch.randn(2, 3).to(getattr(torch, dtype)) for dtype in (one, other)]
    made = tensor_of(join([raw_of(part) for part in parts]))
    theirs = torch.cat(parts)
    assert made.dtype is theirs.dtype and torch.equal(made, theirs)
    with pytest.raises(ReadError, match="are not joined"):
        common_type((one, "int64"))


def test_bare_tensors_follow_torchs_own_on_the_device_meta():
    """Shapes, strides and what is still the same memory, for sizes that nobody could hold."""
    theirs = torch.empty(3, 1 << 20, 1 << 20, device="meta")
    ours = bare_tensor("float32", tuple(theirs.shape), shows="w")
    for axes in ((0, 1, 2), (2, 0, 1)):
        assert ours.permute(axes).stride == theirs.permute(axes).stride() and ours.permute(axes).shows == "w"
        moved = ours.permute(axes).contiguous()
        assert moved.stride == theirs.permute(axes).contiguous().stride() and (moved.shows == "w") == (axes[0] == 0)
    assert ours.reshape((-1, 1 << 30)).shape == (3 << 10, 1 << 30) and ours.reshape((-1, 4)).shows == "w"
    assert ours.permute((2, 0, 1)).reshape((4, -1)).shows == "" and ours.rows(1, 2).shape == (1, 1 << 20, 1 << 20)
    assert join([ours, ours], axis=1).shape == (3, 1 << 21, 1 << 20) and ours.copy().shows == ""
