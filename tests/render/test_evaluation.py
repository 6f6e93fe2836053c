"""An evaluation as tables and figures: the numbers are the report's, and a name from a folder stays text."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from inspector.cam.report import Preprocessing
from inspector.evaluate.labels import Listing
from inspector.evaluate.mapping import map_classes
from inspector.evaluate.report import Evaluated, Evaluation
from inspector.evaluate.sentences import answer, calibration_text, p_text
from inspector.evaluate.summarise import MOST_CURVES, MOST_WORST, summarise
from inspector.render import evaluation as tables
from inspector.render.evaluation_figures import confusion_figure, curves_figure, reliability_figure
from inspector.render.json import as_json

STEPS = Preprocessing(
    resize=8, crop=None, mean=(0.5,), std=(0.5,), channels=1, interpolation="bilinear", source="a test", assumed=False
)


def _report(values: np.ndarray, labels: list[int], names: tuple[str, ...]) -> Evaluation:
    paths = tuple(f"{names[label]}/{n}.png" for n, label in enumerate(labels))
    listing = Listing(name="data", digest="d", classes=names, paths=paths, labels=tuple(labels))
    checkpoint = Evaluated(name="a.pth", sha256="", architecture="own", weights="", preprocessing=STEPS)
    return summarise(values.astype(np.float32), (), listing, map_classes(names, len(names)), checkpoint)


@pytest.fixture
def report() -> Evaluation:
    """Two <b>cats, one of which is taken for a dog; three dogs, all right; nothing is called =cow."""
    values = np.array([[3, 1, 0], [1, 2, 0], [0, 4, 1], [0, 4, 1], [1, 2, 0]])
    return _report(values, [0, 0, 1, 1, 1], ("<b>cat", "=dog", "~cow"))


def test_the_matrix_is_the_counts(report: Evaluation) -> None:
    classes, rows = tables.confusion_matrix(report)
    assert [one.name for one in classes] == ["<b>cat", "=dog", "~cow"]
    assert rows == ((1, 1, 0), (0, 3, 0), (0, 0, 0))
    figure = confusion_figure(report)
    assert np.array(figure.data[0].z).tolist() == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 0]]
    assert "&lt;b&gt;cat" in figure.layout.xaxis.ticktext and "<b>" not in figure.to_json().replace("<br>", "")


def test_sentences_and_tables(report: Evaluation) -> None:
    assert answer(report) == (
        "80.0 % right (95 % interval 37.6 % to 96.4 %) of 5 pictures. Worst class: <b>cat, 50.0 % of 2."
    )
    assert tables.classes_listing(report).rows[0][:4] == ("<b>cat", "2", "1", "0.500")
    assert tables.classes_listing(report).rows[-1][3:5] == ("-", "-")
    assert tables.confused_listing(report).rows == (("<b>cat", "=dog", "1", "50.0 %"),)
    lines = tables.pictures_csv(report).splitlines()
    assert lines[2].startswith("<b>cat/1.png,<b>cat,<b>cat,'=dog,0,2,")
    told = json.loads(as_json(report))
    assert told["classes"][2]["recall"] == "NaN" and len(told["rows"]) == 5
    assert report.means.classes == 2 and report.means.recall == 0.75


def test_of_many_classes_the_most_confused_are_drawn() -> None:
    rng = np.random.default_rng(0)
    names = tuple(f"class {n:03d}" for n in range(60))
    labels = np.repeat(np.arange(60), 5)
    values = rng.normal(size=(300, 60)) + 2.5 * np.eye(60)[labels]
    values[labels == 59] = 9 * np.eye(60)[0]
    found = _report(values, labels.tolist(), names)
    classes, rows = tables.confusion_matrix(found)
    assert len(classes) == tables.MOST_CELLS and {"class 000", "class 059"} <= {one.name for one in classes}
    assert rows[-1][0] == 5
    assert confusion_figure(found).data[0].text is None
    assert len(found.curves) == MOST_CURVES and len(found.worst) == MOST_WORST
    precisions = {one.index: one.average_precision for one in found.classes}
    assert max(precisions[one.index] for one in found.curves) <= min(
        value for index, value in precisions.items() if index not in {one.index for one in found.curves}
    )


def test_curves_and_bins_are_drawn_from_the_report(report: Evaluation) -> None:
    figure = curves_figure(report, report.curves, roc=False)
    assert [list(zip(line.x, line.y, strict=True)) for line in figure.data] == [
        list(one.precision_recall) for one in report.curves
    ]
    assert len(curves_figure(report, report.curves, roc=True).data) == 1 + len(report.curves)
    bars = reliability_figure(report.calibration).data[0]
    assert list(bars.y) == [one.accuracy for one in report.calibration.bins if one.pictures]


def test_words_about_sureness(report: Evaluation) -> None:
    from dataclasses import replace

    found = replace(report.calibration, confidence=0.9, accuracy=0.8, error=0.104, pictures=5)
    assert calibration_text(found).startswith("Over-confident: its answers are 90.0 % sure on average and 80.0 % right")
    assert "10.4 points" in calibration_text(found)
    assert calibration_text(replace(found, confidence=0.7)).startswith("Under-confident")
    assert calibration_text(replace(found, confidence=0.81)).startswith("Calibration")
    assert calibration_text(replace(found, pictures=0, confidence=math.nan)) == ""
    assert [p_text(p) for p in (1.0, 0.0391, 1e-9)] == ["1", "0.039", "< 0.0001"]


def test_nothing_that_could_be_read_is_said() -> None:
    listing = Listing(name="data", digest="d", classes=("a", "b"), paths=("a/1.png",), labels=(0,))
    checkpoint = Evaluated(name="a.pth", sha256="", architecture="own", weights="", preprocessing=STEPS)
    values = np.full((1, 2), np.nan, dtype=np.float32)
    found = summarise(values, ((0, "no picture"),), listing, map_classes(("a", "b"), 2), checkpoint)
    assert answer(found) == "No picture could be read, so nothing was scored."
    assert found.pictures == 0 and math.isnan(found.means.recall) and found.curves == ()
    json.loads(as_json(found))
