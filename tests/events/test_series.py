"""How values become series: tags and plugins, steps that were logged twice, and forms of numbers."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from inspector.checkpoint.source import BufferSource
from inspector.events.read import read_events
from inspector.events.report import EventLog
from inspector.events.tensors import shape_message, strings
from inspector.events.wire import double, message, packed_varints, text, varint
from tests.events.made import event, metadata, plain_scalar, points, read, scalars, value

START = message(7, varint(1, 1))


def _tensor(dtype: int, *parts: bytes, shape: tuple[int, ...] = ()) -> bytes:
    return message(8, varint(1, dtype), shape_message(2, shape), *parts)


def _scalar_of(dtype: int, *parts: bytes, shape: tuple[int, ...] = ()) -> EventLog:
    return read(value("x", _tensor(dtype, *parts, shape=shape), metadata("scalars")))


def test_a_later_value_stands_as_in_the_data_server() -> None:
    """TensorBoard 2.21 serves 0..4 of the first and 5, 6, 7 of the second writing; see test_shown.py."""
    data = scalars(10) + b"".join(plain_scalar("loss", 100.0 + s, step=s) for s in (5, 6, 6, 7))
    log = read(data)
    assert points(log, "loss") == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, 105.0), (6, 106.0), (7, 107.0)]
    series = log.scalar("loss")
    assert series is not None and series.replaced == 6 and series.last == 107.0
    (finding,) = log.findings
    assert finding.id == "events-replaced" and "6 points of 1 series" in finding.says and "step 5" in finding.says


def test_another_series_keeps_its_steps() -> None:
    log = read(scalars(4, "a") + scalars(4, "b") + event(START, step=2) + plain_scalar("a", 9.0, step=2))
    assert [step for step, _ in points(log, "a")] == [0, 1, 2]
    assert [step for step, _ in points(log, "b")] == [0, 1, 2, 3]
    assert log.restarts == (2,)


def test_files_of_a_run_are_read_as_one() -> None:
    files = [BufferSource(scalars(3), "1"), BufferSource(plain_scalar("loss", 7.0, step=1), "2")]
    log = read_events(files, name="run")
    assert points(log, "loss") == [(0, 0.0), (1, 7.0)]
    assert [file.records for file in log.files] == [5, 1] and log.name == "run"


@pytest.mark.parametrize(
    ("dtype", "parts", "expected"),
    [
        (1, message(4, struct.pack("<f", 0.5)), 0.5),
        (2, message(4, struct.pack("<d", 1 / 3)), 1 / 3),
        (2, double(6, 1 / 3), 1 / 3),
        (2, message(6, struct.pack("<d", 1 / 3)), 1 / 3),
        (1, message(5, struct.pack("<f", 0.25)), 0.25),
        (19, message(4, np.float16(1.5).tobytes()), 1.5),
        (19, packed_varints(13, [int(np.float16(-2.5).view(np.uint16))]), -2.5),
        (14, packed_varints(13, [0x3FC0]), 1.5),  # bfloat16: the upper half of float32's 1.5.
        (14, message(4, b"\xc0\x3f"), 1.5),
        (3, varint(7, -4), -4.0),
        (9, message(4, struct.pack("<q", -(1 << 40))), -float(1 << 40)),
        (9, varint(10, 1 << 40), float(1 << 40)),
        (23, varint(17, (1 << 64) - 1), float((1 << 64) - 1)),
        (10, varint(11, 1), 1.0),
        (4, message(4, b"\xff"), 255.0),
    ],
)
def test_a_scalar_in_each_form_of_a_tensor(dtype: int, parts: bytes, expected: float) -> None:
    assert points(_scalar_of(dtype, parts), "x") == [(0, expected)]


def test_the_last_of_too_few_values_stands_for_the_rest() -> None:
    """As TensorFlow writes a constant: one value and a shape."""
    tensor = _tensor(2, double(6, 1.0), double(6, 4.0), shape=(2, 3))
    (series,) = read(value("h", tensor, metadata("histograms"))).histograms
    assert list(series.points[0]) == [(1.0, 4.0, 4.0), (4.0, 4.0, 4.0)]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(double(2, 0.5), 0.5), (text(3, "adam"), "adam"), (varint(4, 1), True), (varint(4, 0), False)],
)
def test_a_hyperparameter_has_its_type(number: bytes, expected: object) -> None:
    content = message(3, message(1, text(1, "p"), message(2, number)))
    ((name, found),) = read(value("h", metadata("hparams", content))).hyperparameters
    assert name == "p" and found == expected and type(found) is type(expected)


def test_one_number_in_a_shape_of_ones_is_a_scalar() -> None:
    assert points(_scalar_of(2, double(6, 4.0), shape=(1, 1)), "x") == [(0, 4.0)]


@pytest.mark.parametrize(
    "parts",
    [
        _tensor(2, message(4, bytes(16)), shape=(2,)),  # Two numbers.
        _tensor(2, message(4, bytes(7))),  # Not one of 8 bytes.
        _tensor(1),  # None at all.
        _tensor(8, message(4, bytes(8))),  # complex64
        _tensor(7, message(8, b"0.5")),  # A text.
        _tensor(2, message(4, bytes(8)), shape=(1 << 31, 1 << 31)),
        _tensor(2, message(4, bytes(8)), shape=(-1,)),
    ],
)
def test_what_is_no_scalar_is_counted_and_not_guessed(parts: bytes) -> None:
    log = read(value("x", parts, metadata("scalars")))
    assert log.scalars == ()
    assert [(f.id, f.subjects) for f in log.findings] == [("events-unread", ("x",))]


def test_a_tag_is_what_its_first_value_says() -> None:
    """Later values of a tag have no metadata: writers leave them out."""
    data = value("t", message(8, strings([b"one"])), metadata("text")) + value(
        "t", message(8, strings([b"two"])), step=1
    )
    (series,) = read(data).texts
    assert [(p.step, p.texts) for p in series.points] == [(0, ("one",)), (1, ("two",))]


def test_title_and_description_are_the_writer_s() -> None:
    told = message(9, message(1, text(1, "scalars")), text(2, "Loss"), text(3, "of *training*"))
    (series,) = read(value("x", double(3, 0.0), told) + plain_scalar("x", 1.0, step=1)).scalars
    assert (series.title, series.description) == ("Loss", "of *training*")


def test_plugins_that_nobody_reads_here_are_counted() -> None:
    mesh = metadata("mesh")
    data = b"".join(value(f"m{n % 2}", message(8, varint(1, 1)), mesh, step=n) for n in range(6))
    (other,) = read(data + value("plain", message(8, varint(1, 1)))).others[1:]
    assert (other.plugin, other.tags, other.values) == ("mesh", 2, 6)
    assert read(value("plain", message(8, varint(1, 1)))).others[0].plugin == ""


def test_an_older_histogram_loses_its_endless_borders() -> None:
    """TensorBoard's data_compat: empty buckets at the ends go, the outermost edges are the least and largest value."""
    far = 1.7976931348623157e308
    histo = message(
        5,
        double(1, -0.5),
        double(2, 2.5),
        message(6, struct.pack("<5d", -far, 0.0, 1.0, 2.0, far)),
        message(7, struct.pack("<5d", 0, 3, 0, 2, 4)),
    )
    (series,) = read(value("h", histo)).histograms
    assert list(series.points[0]) == [(-0.5, 0.0, 3.0), (0.0, 1.0, 0.0), (1.0, 2.0, 2.0), (2.0, 2.5, 4.0)]


def test_texts_are_kept_up_to_a_length() -> None:
    long = "x" * 100_000
    (series,) = read(value("t", message(8, strings([b"a", long.encode(), b"b"])), metadata("text"))).texts
    (point,) = series.points
    assert point.texts[0] == "a" and len("".join(point.texts)) == 1 << 16
    assert point.nbytes == 100_002
