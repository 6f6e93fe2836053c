"""`evaluate`: the sample model on fresh scenes; what it prints, writes, refuses, and where it goes on."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspector.cam.sweeping import run as sweeping
from inspector.cli import evaluating
from inspector.cli.main import run
from inspector.evaluate import work
from inspector.render.evaluation import tsv_text
from sample_models.labelled import write_labelled
from sample_models.shapes import CLASSES

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
MODEL = str(SAMPLES / "shapes.pth")
OTHER = str(SAMPLES / "shapes_vit.safetensors")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("labelled") / "shapes.zip", each=4)


def test_the_sample_set_is_the_same_each_time(pictures: Path, tmp_path: Path) -> None:
    assert write_labelled(tmp_path / "again.zip", each=4).read_bytes() == pictures.read_bytes()


def test_the_answer_comes_first_and_the_order_of_names_is_told(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", MODEL, str(pictures)]) == 0
    out = capsys.readouterr().out
    assert " right (95 % interval " in out.splitlines()[0] and "of 16 pictures" in out.splitlines()[0]
    assert "in another order than the sorted folders: folder 2 is output 3, 'star'" in out
    assert "Recall" in out and "circle" in out


def test_everything_is_written_and_agrees(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, table = tmp_path / "out", tmp_path / "rows.csv"
    asked = ["evaluate", MODEL, str(pictures), "--against", OTHER, "--out", str(place), "--csv", str(table), "--json"]
    assert run(asked) == 0
    told = json.loads(capsys.readouterr().out)
    report = told["evaluation"]
    assert json.loads((place / "evaluation.json").read_text()) == report
    assert json.loads((place / "against" / "evaluation.json").read_text()) == told["against"]
    assert json.loads((place / "comparison.json").read_text()) == told["comparison"]
    rows = list(csv.DictReader(table.open(newline="")))
    assert len(rows) == 16 and [row["picture"] for row in rows] == [row["path"] for row in report["rows"]]
    assert sum(int(row["right"]) for row in rows) == round(16 * report["top1"]["mean"])
    scores = np.load(place / "scores.npy")
    assert scores.shape == (16, 4) and scores.dtype == np.float32
    answers = [CLASSES[index] for index in scores.argmax(axis=1)]
    assert answers == [row["answer"] for row in rows]
    lines = [line.split("\t") for line in (place / "classes.tsv").read_text().splitlines()]
    assert [line[1] for line in lines] == ["class", *CLASSES]
    if report["worst"]:
        assert Image.open(place / "worst.png").size[0] > 200
    counts = told["comparison"]
    assert sum(counts[name] for name in ("both", "only_first", "only_second", "neither")) == counts["pictures"] == 16
    # Nothing of the way is left.
    assert not list(place.rglob(".scores"))


def test_what_was_stopped_goes_on(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PIECE", 4)
    place = tmp_path / "out"
    batches: list[int] = []
    forward = work.forward

    def counting(borrowed, batch):  # type: ignore[no-untyped-def]
        batches.append(len(batch))
        if len(batches) == 3:
            raise KeyboardInterrupt
        return forward(borrowed, batch)

    monkeypatch.setattr(work, "forward", counting)
    assert run(["evaluate", MODEL, str(pictures), "--out", str(place)]) == 130
    assert len(list((place / ".scores" / "results").iterdir())) == 2
    batches[:] = [0] * 3
    assert run(["evaluate", MODEL, str(pictures), "--out", str(place)]) == 0
    assert batches[3:] == [4, 4]  # the two pieces that were missing
    assert not (place / ".scores").exists()


def test_pictures_that_cannot_be_read_are_listed_and_it_is_no_clean_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in CLASSES:
        (tmp_path / "data" / name).mkdir(parents=True)
        Image.new("RGB", (40, 40)).save(tmp_path / "data" / name / "a.png")
    (tmp_path / "data" / "star" / "b.png").write_bytes(b"no picture")
    assert run(["evaluate", MODEL, str(tmp_path / "data")]) == 1
    assert "1 picture could not be read and is not counted: star/b.png" in capsys.readouterr().out


@pytest.mark.parametrize(("folders", "says"), [
    (("cat", "dog", "star", "square"), "Not among the outputs: cat, dog"),
    (("train", "val"), "2 class folders: train, val. 4 outputs: circle, square, triangle, star"),
])  # fmt: skip
def test_labels_that_do_not_fit_are_refused(
    tmp_path: Path, folders: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in folders:
        (tmp_path / "data" / name).mkdir(parents=True)
        Image.new("RGB", (40, 40)).save(tmp_path / "data" / name / "a.png")
    place = tmp_path / "out"
    assert run(["evaluate", MODEL, str(tmp_path / "data"), "--out", str(place)]) == 2
    assert says in capsys.readouterr().err
    assert not list(place.rglob("*.*"))


def test_names_by_hand_say_which_folder_is_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "three"):
        (tmp_path / "data" / name).mkdir(parents=True)
        Image.new("RGB", (40, 40)).save(tmp_path / "data" / name / "a.png")
    (tmp_path / "names.txt").write_text("zero\none\ntwo\nthree\n")
    asked = ["evaluate", MODEL, str(tmp_path / "data"), "--names", str(tmp_path / "names.txt"), "--json"]
    assert run(asked) == 0
    assert json.loads(capsys.readouterr().out)["evaluation"]["mapping"]["indices"] == [1, 3]


def test_a_file_that_is_read_is_not_written_over(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", MODEL, str(pictures), "--csv", MODEL]) == 2
    assert "is a file that this reads" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    assert run(["evaluate", MODEL, str(pictures), "--out", str(tmp_path / "file")]) == 2
    assert "cannot be made a folder" in capsys.readouterr().err


def test_a_name_cannot_add_a_column_or_a_line() -> None:
    text = tsv_text(("a", "b"), [("x\ty\nz\r", 0.5), (None, float("nan"))])
    assert text == "a\tb\nx\\ty\\nz\\r\t0.5\n\t\n"


def test_scores_are_kept_beside_nothing_else(tmp_path: Path) -> None:
    files = evaluating.Files(tmp_path / "out", inputs=())
    store = files.keep_scores()
    assert store is not None
    store.put("scores", [("a" * 40, b"x")])
    (tmp_path / "out" / "mine.txt").write_text("kept")
    files.drop_scores()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
