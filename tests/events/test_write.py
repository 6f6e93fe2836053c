"""What the writer writes, as TensorBoard and torch have it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inspector.errors import UsageError
from inspector.events.write import EventWriter, count_at_thresholds, event_file
from tests.events.made import WHEN, points, read, scalars, written


def test_the_same_calls_make_the_same_bytes_and_no_clock_is_asked(tmp_path: Path) -> None:
    assert scalars(3) == scalars(3)
    with event_file(tmp_path, WHEN) as writer:
        for step in range(3):
            writer.scalar("loss", step, float(step), WHEN + step)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == scalars(3)
    assert path.name == "events.out.tfevents.1700000000.model-inspector"


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), event_file(tmp_path, WHEN) as writer:
        writer.scalar("loss", 0, 1.0)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "events.out.tfevents.1700000000.model-inspector").write_text("mine")
    with pytest.raises(FileExistsError), event_file(tmp_path, WHEN):
        pass
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_our_own_reader_reads_all_of_it() -> None:
    def write(writer: EventWriter) -> None:
        writer.scalar("loss", -3, 0.5)
        writer.scalar("loss", (1 << 63) - 1, float("inf"))
        writer.scalar("large", 0, 1e300)
        writer.histogram("h", 1, [0.0, 0.1, 5.0], [2.5, 0.0])
        writer.text("t", 2, "a *b*\n\ud800")
        writer.image("i", 3, b"\x89PNG1234", (7, 9))
        writer.pr_curve("c", 4, [[3, 1], [2, 0], [0, 2], [0, 2]])

    log = read(written(write))
    assert log.findings == ()
    assert points(log, "loss") == [(-3, 0.5), ((1 << 63) - 1, float("inf"))]
    assert points(log, "large") == [(0, float("inf"))]
    assert [list(point) for point in log.histograms[0].points] == [[(0.0, 0.1, 2.5), (0.1, 5.0, 0.0)]]
    assert log.texts[0].points[0].texts == ("a *b*\n?",)
    (image,) = log.images[0].points[0].images
    assert (image.width, image.height) == (9, 7)
    assert written(write)[image.offset :].startswith(b"\x89PNG1234")
    rows = np.frombuffer(log.curves[0].points[0].rows).reshape(6, 2)
    # Precision 3/5 and 1/1, recall 3/3 and 1/3.
    np.testing.assert_array_equal(rows[4:], [[0.6, 1.0], [1.0, 1 / 3]])


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda w: w.scalar("", 0, 1.0), "needs a tag"),
        (lambda w: w.scalar("x", 1 << 63, 1.0), "step of 64 bits"),
        (lambda w: w.scalar("x", 0, 1.0, float("nan")), "no time"),
        (lambda w: w.histogram("x", 0, [0, 1], [1, 2]), "2 counts has 3 edges"),
        (lambda w: w.histogram("x", 0, [], []), "has 1 edges"),
        (lambda w: w.histogram("x", 0, [0, float("inf")], [1]), "not finite"),
        (lambda w: w.histogram("x", 0, [1, 0], [1]), "do not ascend"),
        (lambda w: w.histogram("x", 0, [0, 1], [-1]), "negative"),
        (lambda w: w.pr_curve("x", 0, [[1, 2]] * 3), "four rows"),
        (lambda w: w.pr_curve("x", 0, [[1]] * 4), "two thresholds"),
        (lambda w: w.pr_curve("x", 0, [[1, -1]] * 4), "negative"),
        (lambda w: w.image("x", 0, b"", (1, 1)), "no bytes"),
        (lambda w: w.image("x", 0, b"p", (0, 1)), "size 0x1"),
    ],
)
def test_what_cannot_be_shown_is_refused(write: Callable[[EventWriter], None], says: str) -> None:
    file = io.BytesIO()
    writer = EventWriter(file, WHEN)
    before = file.getvalue()
    with pytest.raises(UsageError, match=says):
        write(writer)
    assert file.getvalue() == before


def test_counts_at_thresholds_by_hand() -> None:
    counts = count_at_thresholds([0.0, 0.3, 0.5, 1.0], [False, True, False, True], thresholds=3)
    # At 0, 0.5 and 1; a score that is the threshold reaches it.
    np.testing.assert_array_equal(counts, [[2, 1, 1], [2, 1, 0], [0, 1, 2], [0, 1, 1]])


def test_counts_at_thresholds_are_those_of_each_comparison() -> None:
    generator = np.random.default_rng(1)
    scores, truth = generator.integers(0, 21, 400) / 20, generator.random(400) < 0.3
    counts = count_at_thresholds(scores, truth, thresholds=21)
    for number, border in enumerate(np.linspace(0, 1, 21)):
        called = scores >= border
        expected = [called & truth, called & ~truth, ~called & ~truth, ~called & truth]
        np.testing.assert_array_equal(counts[:, number], [one.sum() for one in expected])


@pytest.mark.parametrize("scores", [[0.5, 1.5], [float("nan"), 0.5], [0.5]])
def test_scores_that_are_no_probabilities_are_refused(scores: list[float]) -> None:
    with pytest.raises(UsageError, match="score from 0 to 1"):
        count_at_thresholds(scores, [True, False])
