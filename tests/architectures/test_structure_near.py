"""A network whose names are near a known one's by chance: its structure is told, and the known one's head is not."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import pytest
import torch

from inspector import open_checkpoint
from inspector.architectures.recognise import recognise
from inspector.checkpoint.types import Checkpoint, Shape
from inspector.overview import Topic, summarise
from inspector.render.text import assumed_text
from tests.architectures.test_structure_stranger import printed

Of = Callable[[str], dict[str, Shape]]


def saved(shapes: Mapping[str, Shape]) -> Checkpoint:
    """Each tensor of one number with strides of nothing."""
    buffer = io.BytesIO()
    torch.save({name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}, buffer)
    return open_checkpoint(buffer.getvalue())


def chance(shapes: Of, blocks: int) -> dict[str, Shape]:
    """Most of a resnet18 with 37 classes, one of its layers in another shape, among so many blocks of its own."""
    known = shapes("resnet18?num_classes=37")
    kept = {name: shape for name, shape in known.items() if not name.startswith("layer4")}
    kept["layer3.0.conv1.weight"] = (256, 128, 5, 5)
    own = {f"own.{n}.{name}": shape for n in range(blocks) for name, shape in {"w": (8, 8), "b": (8,)}.items()}
    return {**kept, **own}


def model_answer(file: Checkpoint) -> str:
    return next(answer.says for answer in summarise(file).answers if answer.topic is Topic.MODEL)


def test_a_near_candidate_hides_no_structure_and_gives_no_classes(shapes: Of) -> None:
    file = saved(chance(shapes, 40))
    found = recognise(file)
    assert found.best is not None and not found.best.exact and found.best.score < 0.5
    assert found.says.startswith("This is near torchvision's resnet18 (")
    assert found.structure is not None and found.structure.counts in model_answer(file)
    text = printed(assumed_text(found))
    assert "Nothing is assumed." not in text and "strides, padding, dilation and pooling" in text


def test_a_candidate_that_is_most_of_the_file_keeps_its_classes(shapes: Of) -> None:
    found = recognise(saved(chance(shapes, 2)))
    assert found.says.startswith("This is near torchvision's resnet18 with 37 classes (")


@pytest.mark.parametrize("missing", ["", "layer4.1"])
def test_what_fits_in_all_tensors_is_an_answer_already(shapes: Of, missing: str) -> None:
    """Whole, and a part of it."""
    known = shapes("resnet18?num_classes=37")
    file = saved({name: shape for name, shape in known.items() if not missing or not name.startswith(missing)})
    found = recognise(file)
    assert "convolutions, " not in model_answer(file)
    assert missing or printed(assumed_text(found)).strip() == "Nothing is assumed."
