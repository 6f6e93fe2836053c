"""What is written of checkpoints: their steps, how far tensors moved, and the picture of their weights."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.compare.updates import measure_updates, together
from inspector.events.checkpoints import CheckpointStep, choose_steps, write_checkpoint
from inspector.events.png import encode_png
from inspector.readers import open_checkpoint
from inspector.weights.measure import measure_weights
from tests.events.made import points, read, written


def _opened(path: Path, state: dict[str, torch.Tensor]) -> tuple[Checkpoint, StateDict]:
    torch.save(state, path)
    checkpoint = open_checkpoint(path)
    assert checkpoint.weights is not None
    return checkpoint, checkpoint.weights


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([(1.0, 500.0), (2.0, 1000.0)], ((500, 1000), "step")),
        ([(1.0, 500.0), (2.0, None)], ((1, 2), "epoch")),
        ([(3.0, 7.0), (4.0, 7.0)], ((3, 4), "epoch")),
        ([(0.5, None), (1.0, None)], ((0, 1), "order")),
        ([(1.0, None), (1.0, None)], ((0, 1), "order")),
        ([(None, None)], ((0,), "order")),
    ],
)
def test_steps(places: list[tuple[float | None, float | None]], expected: tuple[tuple[int, ...], str]) -> None:
    assert choose_steps(places) == expected


def test_how_far_tensors_moved_by_hand(tmp_path: Path) -> None:
    before = {
        "w": torch.tensor([[3.0, 0.0], [0.0, 4.0]]),
        "b": torch.zeros(2),
        "n": torch.tensor(3),
        "bad": torch.full((2,), math.nan),
        "other": torch.ones(3),
        "half": torch.tensor([2.0, 0.0], dtype=torch.bfloat16),
    }
    after = {
        "w": torch.tensor([[3.0, 1.0], [0.0, 4.0]]),
        "b": torch.ones(2),
        "n": torch.tensor(4),
        "bad": torch.zeros(2),
        "other": torch.ones(4),
        "half": torch.tensor([2.0, 3.0], dtype=torch.bfloat16),
    }
    moved = measure_updates(_opened(tmp_path / "a.pth", before), _opened(tmp_path / "b.pth", after))
    found = {update.name: update for update in moved}
    assert found.keys() == {"w", "b", "half"}
    assert found["w"].ratio == 1 / 5 and found["half"].ratio == 3 / 2 and found["b"].ratio == math.inf
    whole = together(moved)
    assert (whole.moved, whole.before) == pytest.approx((math.sqrt(1 + 2 + 9), math.sqrt(25 + 4)))


def test_the_numbers_of_a_checkpoint(tmp_path: Path) -> None:
    weight = torch.linspace(-2, 2, 600).reshape(20, 30)
    weight[0, 0] = math.nan
    state = {"fc.weight": weight, "fc.bias": torch.tensor([0.0, 0.0, 3.0, 4.0]), "steps": torch.tensor([1, 2])}
    checkpoint, weights = _opened(tmp_path / "a.pth", state)
    step = CheckpointStep(
        step=7,
        wall_time=1e9,
        about="about",
        weights=measure_weights(checkpoint, weights),
        stated=(("loss", "0.25"), ("epoch", "7"), ("name", "resnet"), ("best", "inf")),
    )
    log = read(written(lambda writer: write_checkpoint(writer, step)))
    assert log.findings == ()
    assert points(log, "stated/loss") == [(7, 0.25)]
    assert log.scalar("stated/epoch") is None and log.scalar("stated/best") is None and log.scalar("rms/steps") is None
    assert points(log, "rms/fc.bias") == [(7, 2.5)] and points(log, "share of zeros/fc.bias") == [(7, 0.5)]
    assert points(log, "checkpoint/values that are not finite") == [(7, 1.0)]
    finite = torch.cat([weight.flatten()[1:], state["fc.bias"]]).double()
    assert points(log, "checkpoint/rms")[0][1] == pytest.approx(finite.square().mean().sqrt().item(), rel=1e-6)
    bars = {series.tag: list(series.points[0]) for series in log.histograms}
    assert bars.keys() == {"weights/fc.weight", "weights/fc.bias"}
    assert sum(count for _, _, count in bars["weights/fc.weight"]) == pytest.approx(599)
    assert bars["weights/fc.bias"][0][0] == 0.0 and bars["weights/fc.bias"][-1][1] == 4.0
    (image,) = log.images
    # A row of the strip for the one weight with two dimensions.
    assert (image.points[0].images[0].width, image.points[0].images[0].height) == (64 * 8, 6)
    assert log.texts[0].points[0].texts == ("about",)


def test_without_floating_tensors_nothing_is_made_up(tmp_path: Path) -> None:
    checkpoint, weights = _opened(tmp_path / "a.pth", {"n": torch.arange(4), "e": torch.zeros(0, 3)})
    step = CheckpointStep(step=0, wall_time=0, about="", weights=measure_weights(checkpoint, weights))
    log = read(written(lambda writer: write_checkpoint(writer, step)))
    assert [series.tag for series in log.scalars] == ["checkpoint/values that are not finite"]
    assert log.images == () and log.histograms == ()


def test_a_picture_is_read_as_it_was() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encode_png(pixels)))), pixels)
