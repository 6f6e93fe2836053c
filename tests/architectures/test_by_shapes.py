"""Files whose names say nothing: what shapes alone may say, and what they may not."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import pytest

from inspector.architectures.by_shapes import alike, rank_by_shapes
from inspector.architectures.index import load_index
from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint

Shapes = dict[str, tuple[int, ...]]
Make = Callable[..., Checkpoint]
Of = Callable[[str], Shapes]


def scrambled(own: Shapes) -> Shapes:
    return {f"p{i:04d}": shape for i, shape in enumerate(own.values())}


def test_scrambled_names_are_no_candidate_but_a_likeness(checkpoint: Make, shapes: Of) -> None:
    found = recognise(checkpoint(scrambled(shapes("resnet34"))))
    assert found.candidates == () and found.best is None
    first = found.alike[0]
    # 36 convolutions, as many norms with four vectors each, and the head's two; the 36 counters are scalars.
    assert (first.label, first.share, first.order, first.tensors, first.fitting) == (
        "torchvision/resnet34", 1.0, 1.0, 182, 182,
    )  # fmt: skip
    assert "timm/resnet34" in first.twins
    assert found.says.startswith("By its names this is not one of torchvision's or timm's architectures. By shapes")
    assert "182 of its 182 tensors have a counterpart of that shape, in the same order" in found.says


def test_order_decides_between_relatives_and_is_not_needed(shapes: Of) -> None:
    own = scrambled(shapes("timm/vit_small_patch16_224?num_classes=10"))
    assert "timm/vit_small_patch16_224" in (alike(own, load_index())[0].label, *alike(own, load_index())[0].twins)
    names = list(own)
    random.Random(0).shuffle(names)
    mixed = alike({name: own[name] for name in names}, load_index())[0]
    assert mixed.order < 0.5 and mixed.share > 0.95


def test_the_same_runs_in_another_order_are_told_apart(shapes: Of) -> None:
    """torchvision and timm put the blocks of a RegNet together from the same pairs and triples of shapes."""
    for label in ("torchvision/regnet_x_400mf", "timm/regnetx_004_tv"):
        first = rank_by_shapes(scrambled(shapes(f"{label}?num_classes=10")), load_index())[0]
        assert label in (first.label, *first.twins)


def test_named_files_are_not_asked_for_shapes(checkpoint: Make, shapes: Of) -> None:
    assert recognise(checkpoint(shapes("resnet18"))).alike == ()


def test_strangers_and_small_files_are_like_nothing(identify_benchmark: ModuleType, shapes: Of) -> None:
    for label, own in identify_benchmark.strangers().items():
        assert alike(scrambled(own), load_index()) == (), label
    few = dict(list(scrambled(shapes("alexnet")).items()))
    assert len(few) < 20 and alike(few, load_index()) == ()
    assert alike({}, load_index()) == () and alike({"a": (), "b": ()}, load_index()) == ()


@pytest.mark.parametrize("label", [entry.label for entry in load_index().entries if not entry.options][::97])
def test_a_slice_of_the_benchmark_by_shapes(label: str, shapes: Of) -> None:
    first = rank_by_shapes(scrambled(shapes(label)), load_index())[0]
    assert label in (first.label, *first.twins) and first.share == 1.0 and first.order == 1.0
