"""What changed below a module of a network, and both heat strips row by row."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.compare.diff import compare_checkpoints
from inspector.compare.fingerprints import fingerprint_pairs
from inspector.compare.modules import below_modules, change_of
from inspector.compare.report import Diff
from inspector.readers import open_checkpoint
from inspector.weights.measure import measure_weights

State = dict[str, torch.Tensor]


def _diff(folder: Path, a: State, b: State) -> Diff:
    for name, state in (("a.pth", a), ("b.pth", b)):
        torch.save(state, folder / name)
    return compare_checkpoints(open_checkpoint(folder / "a.pth"), open_checkpoint(folder / "b.pth"))


@pytest.fixture
def states() -> tuple[State, State]:
    torch.manual_seed(0)
    a = {
        "module.body.0.weight": torch.randn(6, 5),
        "module.body.1.weight": torch.randn(5, 5),
        "module.head": torch.ones(4),
    }
    return a, {**a, "module.body.1.weight": a["module.body.1.weight"] * 1.5}


def test_change_below_each_module_of_the_network(tmp_path: Path, states: tuple[State, State]) -> None:
    diff = _diff(tmp_path, *states)
    names = {name: (name.removeprefix("module."),) for name in states[0]}
    below = below_modules(diff.tensors, names)
    assert {path: len(tensors) for path, tensors in below.items()} == {"body": 2, "body.0": 1, "body.1": 1}
    assert change_of(below["body.0"]) == (0.0, 0.0)
    relative, share = change_of(below["body"]) or (0, 0)
    assert relative == pytest.approx(0.5, rel=1e-6) and share == 25 / 55
    # What the network has no name for belongs to no module of it.
    assert below_modules(diff.tensors, {}) == {}


def test_nan_is_no_change_that_a_norm_tells_and_another_shape_none_at_all(
    tmp_path: Path, states: tuple[State, State]
) -> None:
    a, b = states
    b["module.body.1.weight"] = a["module.body.1.weight"].clone()
    b["module.body.1.weight"][0, 0] = math.nan
    b["module.body.0.weight"] = torch.randn(7, 4)
    diff = {tensor.name: tensor for tensor in _diff(tmp_path, a, b).tensors}
    assert change_of([diff["module.body.1.weight"]]) == (math.inf, 1 / 25)
    assert change_of([diff["module.body.0.weight"]]) is None


def test_fingerprints_have_a_row_for_each_pair_in_the_same_order(tmp_path: Path, states: tuple[State, State]) -> None:
    a, b = states
    renamed = {name.removeprefix("module."): value for name, value in reversed(b.items())}
    renamed["extra.weight"] = torch.randn(3, 3)
    diff = _diff(tmp_path, a, renamed)
    first, second = (measure_weights(open_checkpoint(tmp_path / name)) for name in ("a.pth", "b.pth"))
    left, right = fingerprint_pairs(diff.tensors, first, second)
    assert left.names == ("module.body.0.weight", "module.body.1.weight")
    assert right.names == ("body.0.weight", "body.1.weight")
    # Larger by half, the numbers lie the same in units of their own root mean square.
    np.testing.assert_allclose(left.shares, right.shares, atol=1 / 25)


def test_counters_rule_no_norm(tmp_path: Path) -> None:
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    a = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    b = {name: tensor * 1.5 if tensor.is_floating_point() else tensor + 144 for name, tensor in a.items()}
    diff = _diff(tmp_path, a, b)
    moved = [name for name in a if a[name].is_floating_point() and not torch.equal(a[name], b[name])]
    square = sum(float(((b[n].double() - a[n].double()) ** 2).sum()) for n in moved)
    norm = math.sqrt(sum(float((a[n].double() ** 2).sum()) for n in moved))
    assert diff.totals.relative == pytest.approx(math.sqrt(square) / norm, rel=1e-6)
    assert diff.totals.without_norm == 1 and "(without 1 counter or other integer)" in diff.says
    assert diff.totals.elements == sum(tensor.numel() for tensor in a.values())
    assert diff.a.parameters == sum(p.numel() for p in net.parameters())
    # A network that is all integers has no other norm than theirs, and counters alone have none.
    whole = {"fc.weight": torch.full((3, 4), 2, dtype=torch.int8), "bn.num_batches_tracked": torch.tensor(6)}
    twice = {"fc.weight": whole["fc.weight"] * 2, "bn.num_batches_tracked": torch.tensor(150)}
    assert _diff(tmp_path, whole, twice).totals.relative == 1
    assert _diff(tmp_path, whole, {**twice, "fc.weight": whole["fc.weight"]}).totals.relative is None
