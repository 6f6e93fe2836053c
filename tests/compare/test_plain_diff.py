"""Twenty pairs of files, ours beside a script that knows only the words of docs/compare.md."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import PairNumbers
from inspector.readers import open_checkpoint
from tests.compare.plain_diff import diff

SUMS = ("sum_a", "sum_b", "square_a", "square_b", "square_delta", "dot")
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)
State = dict[str, torch.Tensor]


def network(seed: int, dtype: torch.dtype = torch.float32) -> State:
    torch.manual_seed(seed)
    shapes = {"conv.weight": (8, 3, 3, 3), "conv.bias": (8,), "fc.weight": (70, 1000), "odd.scalar": (), "e": (0, 3)}
    state = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    return {**state, "steps": torch.tensor(seed), "mask": torch.rand(9) > 0.5, "z": torch.randn(7, dtype=torch.cfloat)}


def changed(state: State, number: int) -> State:
    """One of ten changes, each to other tensors as well."""
    torch.manual_seed(100 + number)
    made = {name: value.clone() for name, value in state.items()}
    weight = made["fc.weight"]
    wide = weight.double()
    kind = number % 10
    if kind == 0:
        made["fc.weight"] = (wide + 0.01 * torch.randn(weight.shape)).to(weight.dtype)
    elif kind == 1:
        made["fc.weight"] = torch.where(wide.abs() < wide.abs().median(), 0, wide).to(weight.dtype)
    elif kind == 2:
        made = {name: value.half() if value.is_floating_point() else value for name, value in made.items()}
    elif kind == 3:
        made["conv.weight"] = (-wide.flatten()[:216].reshape(8, 3, 3, 3)).to(weight.dtype)
        made["steps"] = made["steps"] + 7
    elif kind == 4:
        wide[3, 5], wide[0, 0], wide[9, 9] = math.nan, math.inf, -math.inf
        made["fc.weight"] = wide.to(weight.dtype)
        state["fc.weight"].view(-1)[5] = math.nan
    elif kind == 5:
        made["fc.weight"] = torch.cat([weight, weight[:3]])
        made["extra"] = torch.ones(3)
        del made["mask"]
    elif kind == 6:
        made["fc.weight"] = weight.t()
        made["conv.bias"] = made["conv.bias"].reshape(2, 4)
    elif kind == 7:
        made["mask"] = ~made["mask"]
        made["z"] = made["z"] * 1j
    elif kind == 8:
        made["fc.weight"] = (weight.float().view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)
    elif kind == 9:
        made["fc.weight"] = torch.where(wide.abs() < 0.1, -wide * 0, wide).to(weight.dtype)
        made["odd.scalar"] = (made["odd.scalar"].double() * 2).to(weight.dtype)
    return made


@pytest.mark.parametrize("number", range(20))
def test_counts_extremes_and_places_are_those_of_the_plain_script(number: int, tmp_path: Path) -> None:
    a = network(number, TYPES[number % len(TYPES)])
    b = changed(a, number)
    first, second = tmp_path / "a.safetensors", tmp_path / "b.pth"
    save_file({name: value.contiguous() for name, value in a.items()}, first)
    torch.save({"state_dict": b, "epoch": number}, second)
    theirs = diff(str(first), str(second))
    ours = compare_checkpoints(open_checkpoint(first), open_checkpoint(second))
    assert {t.name: str(t.relation) for t in ours.tensors} == {name: said for name, (said, _) in theirs.items()}
    for tensor in ours.tensors:
        expected = theirs[tensor.name][1]
        if expected is None:
            continue
        assert tensor.numbers is not None, tensor.name
        check(tensor.numbers, dict(expected))


def check(found: PairNumbers, expected: dict[str, object]) -> None:
    size = math.sqrt(float(str(expected["square_a"])) * float(str(expected["square_b"])))
    for name in SUMS:
        exact = float(str(expected.pop(name)))
        # Of a sum with both signs, and of the dot product, beside what is added.
        scale = {"dot": size}.get(name, abs(exact)) if not name.startswith("sum") else max(1.0, found.n)
        assert abs(getattr(found, name) - exact) <= 1e-12 * scale, name
    largest = expected.pop("largest")
    held = found.largest
    assert (None if held is None else {n: getattr(held, n) for n in ("index", "a", "b", "size")}) == largest
    assert {name: getattr(found, name) for name in expected} == expected
