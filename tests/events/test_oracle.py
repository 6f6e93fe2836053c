"""Reading what torch's SummaryWriter wrote, held against what TensorBoard reads of the same file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.pr_curve import metadata as pr_metadata
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter

from inspector.events.read import read_events
from inspector.events.report import EventLog

PICTURE = np.arange(2 * 5 * 3, dtype=np.uint8).reshape(2, 5, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("run")
    generator = np.random.default_rng(0)
    with SummaryWriter(str(where)) as writer:
        for step in range(6):
            writer.add_scalar("train/loss", 1 / (step + 3), step, walltime=1000.5 + step)
            writer.add_scalar("new", 0.1 * step, step, new_style=True)
            writer.add_scalar("double", 0.1 * step, step, new_style=True, double_precision=True)
            writer.add_histogram("weights", generator.normal(step, 2, 500), step)
            writer.add_histogram("same", np.full(7, 3.0), step)
        writer.add_scalar("broken", float("nan"), 0)
        writer.add_scalar("broken", float("-inf"), 1)
        writer.add_text("notes", "# A *title*", 2)
        writer.add_image("picture", PICTURE, 3, dataformats="HWC")
        writer.add_images("pictures", np.stack([PICTURE] * 2), 3, dataformats="NHWC")
        scores = generator.random(300)
        writer.add_pr_curve("curve", scores > 0.4, scores, 5, num_thresholds=11)
        writer.add_graph(torch.nn.Linear(3, 2), torch.zeros(1, 3))
        writer.add_custom_scalars({"c": {"d": ["Multiline", ["train/loss"]]}})
        writer.add_audio("tone", torch.zeros(1, 100), 1)
    return where


@pytest.fixture(scope="module")
def log(folder: Path) -> EventLog:
    return read_events(sorted(folder.iterdir()), name="run")


@pytest.fixture(scope="module")
def oracle(folder: Path) -> EventAccumulator:
    return EventAccumulator(
        str(folder), size_guidance=dict.fromkeys(("scalars", "tensors", "histograms", "images"), 0)
    ).Reload()


def test_scalars(log: EventLog, oracle: EventAccumulator) -> None:
    for tag in ("train/loss", "broken"):
        series = log.scalar(tag)
        assert series is not None
        np.testing.assert_array_equal(list(series), [(e.step, e.value, e.wall_time) for e in oracle.Scalars(tag)])
    for tag in ("new", "double"):
        series = log.scalar(tag)
        assert series is not None
        expected = [tensor_util.make_ndarray(event.tensor_proto).item() for event in oracle.Tensors(tag)]
        assert [value for _, value, _ in series] == expected
    assert log.findings == ()


def test_histograms_are_those_that_tensorboard_makes_of_them(log: EventLog, folder: Path) -> None:
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as Newer

    newer = Newer(str(folder)).Reload()
    assert [series.tag for series in log.histograms] == ["same", "weights"]
    for series in log.histograms:
        events = newer.Tensors(series.tag)
        assert len(events) == len(series.points) == 6
        for event, point in zip(events, series.points, strict=True):
            assert event.step == point.step
            # TensorBoard's is float32.
            expected = tensor_util.make_ndarray(event.tensor_proto)
            np.testing.assert_array_equal(np.array(list(point), np.float32), expected)


def test_a_curve(log: EventLog, oracle: EventAccumulator) -> None:
    (series,) = log.curves
    (event,) = oracle.Tensors("curve")
    (point,) = series.points
    assert (point.step, point.thresholds) == (5, 11)
    rows = np.frombuffer(point.rows).reshape(6, 11)
    np.testing.assert_array_equal(rows, tensor_util.make_ndarray(event.tensor_proto))
    assert rows[pr_metadata.RECALL_INDEX, 0] == 1.0


def test_text_and_images(log: EventLog, oracle: EventAccumulator, folder: Path) -> None:
    (notes,) = log.texts
    assert (notes.tag, notes.points[0].step, notes.points[0].texts) == ("notes/text_summary", 2, ("# A *title*",))
    picture = next(series for series in log.images if series.tag == "picture")
    (at,) = picture.points[0].images
    assert (at.width, at.height) == (5, 2)
    raw = (sorted(folder.iterdir())[at.file]).read_bytes()
    expected = oracle.Images("picture")[0].encoded_image_string
    assert raw[at.offset : at.offset + at.nbytes] == expected and expected.startswith(b"\x89PNG")


def test_what_else_is_there_is_counted(log: EventLog, oracle: EventAccumulator) -> None:
    (file,) = log.files
    assert file.graph_nbytes == oracle.Graph().ByteSize() and re.match("brain.Event:2", file.version)
    assert {other.plugin: other.values for other in log.others} == {"audio": 1, "custom_scalars": 1}
    assert (log.first_step, log.last_step) == (0, 6 - 1)


def test_hyperparameters(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        given = {"lr": 0.5, "name": "adam", "nesterov": True, "zero": 0.0}
        writer.add_hparams(given, {"accuracy": 0.75}, run_name="one")
    log = read_events(sorted((tmp_path / "one").iterdir()))
    assert dict(log.hyperparameters) == given
    assert log.scalars[0].tag == "accuracy" and log.scalars[0].last == 0.75
