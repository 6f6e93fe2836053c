"""What is written of a projection: words, tables, the projector's two files; and the command."""

from __future__ import annotations

import base64
import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from inspector.cli.main import run
from inspector.projector.project import project
from inspector.render.projection import answer, metadata_tsv, points_csv, projection_plain, sentences, vectors_tsv
from inspector.render.projection_figure import (
    APART,
    CLUSTER,
    LABEL,
    MARKED,
    MOST_DRAWN,
    NORM,
    colours_for,
    drawn_places,
    projection_figure,
)
from tests.projector.making import points


def table(**more: object) -> object:
    values = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    values[4] = 50
    flags = np.zeros(30, bool)
    flags[[1, 2]] = True
    return points(
        values,
        marked=flags,
        marked_as="untrained",
        marked_how="are zero",
        labels=tuple(f"=t{n}\tx" if n < 3 else f"t{n}" for n in range(30)),
        **more,
    )


def test_the_answer_says_what_is_drawn_and_what_is_odd() -> None:
    found = project(table(not_finite=(40, 41), total=32))  # type: ignore[arg-type]
    held = sum(found.shares)
    assert answer(found).startswith("30 rows of table.weight; the first two directions hold 9")
    assert 0.9 < held < 1 and answer(found).endswith("1 row stands apart; 2 rows untrained.")
    said = " ".join(sentences(found))
    assert "2 rows with NaN or infinity cannot be drawn: 40, 41." in said
    assert "Those untrained are zero." in said and "Tukey" in said


def test_the_vectors_come_back_to_the_last_bit_and_labels_stay_in_their_cell() -> None:
    made = table()
    found = project(made)  # type: ignore[arg-type]
    back = np.loadtxt(io.StringIO("".join(vectors_tsv(made))), delimiter="\t", dtype=np.float32)  # type: ignore[arg-type]
    assert back.tobytes() == made.values.tobytes()  # type: ignore[attr-defined]
    lines = "".join(metadata_tsv(found)).splitlines()
    assert lines[0] == "row\tlabel\tnorm\tapart\tuntrained" and len(lines) == 31
    assert {line.count("\t") for line in lines} == {4}
    assert lines[2].split("\t")[1] == "=t1 x" and lines[2].endswith("\t0\t1") and lines[5].split("\t")[3] == "1"


def test_a_label_is_no_formula_in_a_spreadsheet() -> None:
    found = project(table())  # type: ignore[arg-type]
    lines = list(csv.DictReader(io.StringIO(points_csv(found, [1, 4]))))
    assert [line["row"] for line in lines] == ["1", "4"] and lines[0]["label"].startswith("'=t1")
    assert float(lines[1]["pc1"]) == found.coordinates[4, 0]


def test_json_has_every_column() -> None:
    plain = projection_plain(project(table()))  # type: ignore[arg-type]
    assert plain["columns"]["untrained"] == [0, 1, 1, *[0] * 27] and len(plain["coordinates"]["pc2"]) == 30
    assert plain["method"] == "pca" and plain["seed"] is None
    json.dumps(plain, allow_nan=False)


def test_each_colour_draws_every_point_once() -> None:
    found = project(table())  # type: ignore[arg-type]
    assert colours_for(found) == [NORM, MARKED, APART, LABEL, "one colour"]
    for colour in colours_for(found):
        figure = projection_figure(found, colour=colour)
        places = [one[0] for trace in figure.data for one in trace.customdata]
        assert sorted(places) == list(range(30))
        drawn = {one[0]: (x, y) for t in figure.data for one, x, y in zip(t.customdata, t.x, t.y, strict=True)}
        assert all(drawn[at] == tuple(found.coordinates[at]) for at in range(30))
    assert [t.name for t in projection_figure(found, colour=MARKED).data] == ["the others (28)", "untrained (2)"]
    assert [len(t.x) for t in projection_figure(found, colour=APART).data] == [29, 1]


def test_of_many_points_what_stands_out_is_drawn_over_a_shade_of_all() -> None:
    """An element of the page for each of 50,000 points would stop a browser; WebGL is what our own policy forbids."""
    values = np.random.default_rng(0).normal(size=(MOST_DRAWN + 3000, 3)).astype(np.float32)
    values[6001] = 60
    flags = np.zeros(len(values), bool)
    flags[7003] = True
    found = project(points(values, marked=flags, marked_as="untrained"))
    places = drawn_places(found, [7777])
    assert (
        len(places) == MOST_DRAWN and {6001, 7003, 7777} <= set(places.tolist()) and len(set(places.tolist())) == 5000
    )
    for colour in (NORM, MARKED, APART):
        figure = projection_figure(found, colour=colour, highlighted=[7777])
        assert {t.type for t in figure.data} == {"scatter"} and len(figure.layout.images) == 1
        assert sum(len(t.x) for t in figure.data if t.name != "found") == MOST_DRAWN
    assert len(drawn_places(project(points(values), components=3))) == len(values)


def test_the_shade_lies_as_the_points_do() -> None:
    """Most points left at the bottom, some right at the top, nothing in the other two corners."""
    low, high = np.zeros((MOST_DRAWN, 2)), np.ones((1000, 2)) * [2.0, 1.0]
    found = replace(project(points(np.eye(6000, 2))), coordinates=np.concatenate([low, high]))
    image = projection_figure(found).layout.images[0]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.source.partition(",")[2]))))[..., 3]
    assert pixels[-1, 0] == 170 and 60 < pixels[0, -1] < 170 and pixels[0, 0] == pixels[-1, -1] == 0
    assert (image.x, image.y, image.sizex, image.sizey) == (0, 1, 2, 1)


def test_hardly_trained_vocabularies_leave_room_for_the_others() -> None:
    values = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    found = project(points(values, marked=np.arange(9000) < 8000, marked_as="untrained"))
    places = drawn_places(found)
    assert len(places) == MOST_DRAWN and int((places >= 8000).sum()) == 1000


def test_groups_have_colours_of_their_own() -> None:
    pytest.importorskip("sklearn")
    found = project(table(), clusters=3)  # type: ignore[arg-type]
    figure = projection_figure(found, colour=CLUSTER)
    assert len({t.marker.color for t in figure.data}) == 3 and figure.data[0].name.startswith("cluster 0 (")


def test_a_name_is_no_markup() -> None:
    values = np.eye(3)
    found = project(points(values, labels=("<b>a</b>", "b", "c")))
    assert projection_figure(found).data[0].text[0] == "&lt;b&gt;a&lt;/b&gt;"


def test_three_directions_and_pictures() -> None:
    found = project(table(), components=3)  # type: ignore[arg-type]
    figure = projection_figure(found, highlighted=[2])
    assert {t.type for t in figure.data} == {"scatter3d"} and len(figure.data[0].z) == 30
    flat = projection_figure(project(table()), sprites={3: "data:image/png;base64,x"})  # type: ignore[arg-type]
    assert len(flat.layout.images) == 1


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    state = {"embed.weight": torch.randn(40, 6), "fc.weight": torch.randn(3, 6), "fc.bias": torch.zeros(3)}
    torch.save(state, tmp_path / "m.pth")
    return tmp_path / "m.pth"


def test_the_command(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model.parent
    (folder / "vocab.txt").write_text("".join(f"tok{n}\n" for n in range(36)))
    out, sheet = folder / "out", folder / "p.csv"
    asked = ["project", str(model), "--near", "tok5", "--csv", str(sheet), "--tsv", str(out), "--json"]
    assert run(asked) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["projection"]["tensor"] == "embed.weight" and len(plain["neighbours"]) == 10
    assert plain["projection"]["columns"]["label"][5] == "tok5" and plain["projection"]["columns"]["label"][39] == ""
    assert "Labels from vocab.txt beside the file." in plain["projection"]["says"]
    assert len(sheet.read_text().splitlines()) == 41
    assert len((out / "vectors.tsv").read_text().splitlines()) == 40
    assert (out / "metadata.tsv").read_text().splitlines()[-1].split("\t")[1] == "(none)"
    assert run(["project", str(model), "fc.weight", "--axis", "1"]) == 0
    assert "6 columns of fc.weight" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["nope.weight"], "no tensor 'nope.weight'"),
        (["fc.bias"], "no rows of plain numbers"),
        (["--method", "x"], "Methods: pca, tsne, umap"),
        (["--metric", "x"], "Distances: cosine, euclidean"),
        (["--near", "99"], "Row 99 of embed.weight is not on the map"),
        (["--near", "cat"], '0 rows of embed.weight are called "cat"'),
        (["--labels", "long.txt"], "50 labels, and there are 40 rows"),
        (["--csv", "none/x.csv"], "The folder of x.csv does not exist"),
        (["--csv", "m.pth"], "is a file that this reads"),
        (["--tsv", "m.pth"], "m.pth is a file"),
    ],
)
def test_what_the_command_refuses(
    model: Path, more: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    Path("long.txt").write_text("a\n" * 50)
    before = sorted(model.parent.iterdir())
    assert run(["project", "m.pth", *more]) == 2
    assert says in capsys.readouterr().err
    assert sorted(model.parent.iterdir()) == before
