"""How much a diagnosis does for each tensor, counted in calls of Python functions: no load of a machine changes these,
and a name that is looked at by itself where its module would do shows in them."""

from __future__ import annotations

import random
import sys
from types import FrameType

import pytest

from benchmarks.keybench.architectures import architecture_of
from benchmarks.keybench.corruptions import CORRUPTIONS
from benchmarks.keybench.files import checkpoint_of
from benchmarks.keybench.numbers import fingerprints
from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec
from inspector.keys.diagnose import diagnose
from inspector.keys.placing.levels import squares_of
from inspector.keys.placing.symmetry import symmetric
from inspector.keys.placing.tree import Leaf, grow
from inspector.keys.rules.separators import _WAYS, _all

# By kind of damage, calls for a tensor of a ResNet-50: a seventh more than it took when this was written.
MOST = {
    "as it is": 96,
    "module.": 127,
    "module. - 10 %": 192,
    "model. + ema_model.": 200,
    "dots removed": 182,
    "semantic renames": 198,
    "random modules and leaves": 224,
    "opaque, in order": 219,
    "opaque, shuffled": 240,
    "10 classes": 187,
}


def calls_per_tensor(builder: str, kind: str) -> float:
    """Of a diagnosis by names alone that is not the first."""
    network = architecture_of(f"timm/{builder}")
    corruption = next(c for c in CORRUPTIONS if c.name == kind)
    damaged = corruption.make(fingerprints(network, 0), random.Random(0))
    checkpoint = checkpoint_of({name: tuple(tensor.shape) for name, tensor in damaged.file.items()})
    target = target_of(ArchitectureSpec(library="timm", name=builder))
    diagnose(checkpoint, target)
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        diagnose(checkpoint, target)
    finally:
        sys.setprofile(before)
    return calls / len(network.tensors)


@pytest.mark.parametrize(("kind", "most"), MOST.items(), ids=MOST)
def test_a_tensor_takes_few_calls(kind: str, most: int) -> None:
    assert calls_per_tensor("resnet50", kind) <= most


@pytest.mark.parametrize("kind", ["numbers + 1", "random modules and leaves", "semantic renames"])
def test_a_deeper_network_takes_no_more_for_each(kind: str) -> None:
    assert calls_per_tensor("resnet152", kind) <= 1.2 * calls_per_tensor("resnet50", kind)


@pytest.mark.parametrize("squash", [way for _, way in _WAYS])
@pytest.mark.parametrize("names", [[], [""], ["a.b_0", "c/d:0", ""], ["ä.b", "c_d"], ["a\n.b", "c.d"]])
def test_separators_of_all_names_at_once(squash, names: list[str]) -> None:
    assert _all(names, squash) == [squash(name) for name in names]


def test_only_squares_are_looked_into() -> None:
    names = [f"block{i}.stage{j}.weight" for i in range(2) for j in range(2)] + ["stem.0.conv1.weight"]
    found = squares_of(Leaf(name, (4, 4)) for name in names)
    assert [levels for _, levels in found] == ["block{}.stage{}"]
    grid = found["", "block{}.stage{}"]
    assert grid.cells[1, 0] == {".weight": Leaf("block1.stage0.weight", (4, 4))}


def test_a_tensor_at_the_top_stands_in_no_module_without_a_name() -> None:
    root = grow([Leaf(".weight", (4,)), Leaf("bias", (4,)), Leaf("fc.weight", (4,)), Leaf("fc.bias", (4,))])
    assert [*root.leaves] == ["bias"]
    assert [*root.children[""].leaves] == ["weight"]
    assert [*root.children["fc"].leaves] == ["weight", "bias"]


def test_what_could_change_places_is_found_in_every_block() -> None:
    names = [f"layer.{block}.{part}.weight" for block in range(3) for part in ("query", "key", "out")]
    tokens = ["square", "square", "long"] * 2 + ["square", "short", "long"]
    assert symmetric(names, tokens) == {0, 1, 3, 4}
    assert symmetric(names, tokens) == symmetric(names, tokens, [0] * len(names))
