"""explain: grids, folders, series, exports that their own command line makes again, and what is refused."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import nn

from inspector.cli.main import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network, the same after some steps, three pictures of three sizes, a file that is none."""
    here = tmp_path_factory.mktemp("explain")
    torch.manual_seed(3)
    model = torchvision.models.get_model("mobilenet_v3_small", weights=None, num_classes=4).eval()
    facts = {"preprocessing": {"size": 32, "mean": [0.5] * 3, "std": [0.5] * 3}, "classes": ["a", "=b", "c", "d"]}
    torch.save({"state_dict": model.state_dict(), **facts}, here / "net.pth")
    nn.init.normal_(model.classifier[3].weight)
    torch.save({"state_dict": model.state_dict(), **facts}, here / "later.pth")
    (here / "pictures").mkdir()
    for number, (wide, high) in enumerate([(90, 70), (70, 90), (120, 64)]):
        noise = np.random.default_rng(number).integers(0, 256, (high, wide, 3), dtype=np.uint8)
        Image.fromarray(noise).save(here / "pictures" / f"{number}.png")
    (here / "pictures" / "notes.txt").write_text("no picture")
    return here


def report(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "asked",
    [
        [],
        ["--method", "smooth-grad-cam++", "--seed", "5", "--class", "2", "--layer", "features.8"],
        ["--method", "saliency", "--colour-map", "jet", "--opacity", "0.3", "--blend", "uniform"],
        ["--layer", "features.12", "--layer", "features.8", "--fuse", "mean", "--eigen-smooth", "--augment"],
        ["--method", "grad-cam", "--method", "eigen-cam", "--layer", "features.12", "--layer", "features.3"],
    ],
    ids=["plain", "seeded", "no layer", "fused", "grid"],
)
def test_the_manifests_own_command_line_makes_the_same_bytes(folder: Path, tmp_path: Path, asked: list[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    command = ["explain", str(folder / "net.pth"), str(folder / "pictures" / "0.png"), *asked, "--threads", "1"]
    assert run([*command, "--export", str(first)]) == 0
    manifest = json.loads((first / "manifest.json").read_text())
    again = shlex.split(manifest["command"].replace(str(first), str(second)))
    assert again[0] == "inspector"
    assert run(again[1:]) == 0
    files = sorted(path.name for path in first.iterdir())
    assert sorted(path.name for path in second.iterdir()) == files
    assert {"maps.npz", "maps.csv", "manifest.json"} < set(files)
    for name in files:
        if name != "manifest.json":
            assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_what_a_manifest_and_its_arrays_hold(folder: Path, tmp_path: Path) -> None:
    import hashlib

    place = tmp_path / "out"
    picture = folder / "pictures" / "2.png"
    assert run(["explain", str(folder / "net.pth"), str(picture), "--class", "3", "--export", str(place)]) == 0
    manifest = json.loads((place / "manifest.json").read_text())
    assert manifest["checkpoints"][0]["sha256"] == hashlib.sha256((folder / "net.pth").read_bytes()).hexdigest()
    assert manifest["pictures"][0]["sha256"] == hashlib.sha256(picture.read_bytes()).hexdigest()
    (entry,) = manifest["entries"]
    assert (entry["target"]["index"], entry["target"]["name"], entry["method"]) == (3, "d", "grad-cam")
    assert entry["layer"]["layout"] == "NCHW"
    assert "--class 3" in manifest["command"]
    assert f"--layer {entry['layer']['path']}:0" in manifest["command"]
    assert dict(manifest["versions"])["torch"]
    assert manifest["preprocessing"]["mean"] == [0.5] * 3
    with np.load(place / "maps.npz") as arrays:
        assert {name: arrays[name].dtype for name in arrays} == dict.fromkeys(("raw", "heat", "logits"), np.float32)
        assert arrays["heat"].shape == (32, 32)
        assert arrays["logits"].shape == (4,)
        assert float(arrays["raw"].max()) == pytest.approx(entry["raw_maximum"])
    assert Image.open(place / "overlay.png").size == (120, 64)
    assert Image.open(place / "map.png").size == (32, 32)


def test_a_folder_becomes_a_sheet_and_a_table(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, drawn = tmp_path / "t.csv", tmp_path / "s.png"
    given = [str(folder / "net.pth"), str(folder / "pictures")]
    assert run(["explain", *given, "--csv", str(table), "-o", str(drawn), "--json", "--class", "1"]) == 0
    found = report(capsys)
    assert len(found["explanations"]) == 3
    rows = list(csv.DictReader(table.open()))
    assert [row["picture"] for row in rows] == ["0.png", "1.png", "2.png"]
    assert {row["class"] for row in rows} == {"1"}
    assert rows[0]["name"] == "'=b"  # no formula for a spreadsheet
    for row, one in zip(rows, found["explanations"], strict=True):
        assert float(row["raw_maximum"]) == pytest.approx(one["raw_maximum"], rel=1e-5)
        crop = one["crop"]
        if row["box_left"]:
            assert crop["left"] <= float(row["centre_x"]) <= crop["left"] + crop["width"]
            assert 0 <= int(row["box_left"]) < int(row["box_right"]) <= crop["picture_width"]
    assert Image.open(drawn).height > 3 * 224


def test_a_map_that_means_nothing_says_so_on_every_face(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained ShuffleNet answers with its biases of 0.03; its maps are of 1e-7 and looked like any other."""
    torch.manual_seed(0)
    torch.save(torchvision.models.shufflenet_v2_x0_5().state_dict(), tmp_path / "net.pth")
    command = ["explain", str(tmp_path / "net.pth"), str(folder / "pictures" / "0.png")]
    assert run([*command, "--json"]) == 0
    one = report(capsys)["explanation"]
    (finding,) = one["findings"]
    assert (finding["id"], finding["severity"]) == ("faint-map", "warning")
    assert max(abs(one["raw_minimum"]), one["raw_maximum"]) < 1e-6 < 0.03 < one["target"]["logit"]
    assert run(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The score is the bias of fc, 0.03" in said
    # A grid, a sheet of several pictures, the table beside it.
    assert run([*command, "--method", "hires-cam", "--method", "eigen-cam", "--json"]) == 0
    assert [[f["id"] for f in one["findings"]] for one in report(capsys)["explanations"]] == [["faint-map"], []]
    drawn: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        "inspector.cli.explaining.sheet",
        lambda rows: drawn.extend(cell.lines for row in rows for cell in row) or np.zeros((1, 1, 3), np.uint8),
    )
    table = tmp_path / "t.csv"
    sheet = ["-o", str(tmp_path / "s.png"), "--csv", str(table)]
    assert run(["explain", str(tmp_path / "net.pth"), str(folder / "pictures"), *sheet]) == 0
    assert [lines[2] for lines in drawn] == ["faint-map"] * 3
    assert {row["findings"] for row in csv.DictReader(table.open())} == {"faint-map"}
    assert "faint-map" in capsys.readouterr().out
    # A series.
    drawn.clear()
    assert run([*command, "--series", str(tmp_path / "net.pth"), *sheet]) == 0
    assert len(drawn) == 2 and all(lines[3].endswith("faint-map") for lines in drawn)


def test_a_picture_that_cannot_be_read_does_not_end_the_others(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes((folder / "pictures" / "0.png").read_bytes()[:200])
    good = [str(folder / "pictures" / name) for name in ("0.png", "1.png")]
    table = tmp_path / "t.csv"
    command = ["explain", str(folder / "net.pth"), good[0], str(broken), good[1], "--csv", str(table), "--json"]
    assert run(command) == 1
    found = report(capsys)
    assert len(found["explanations"]) == 2
    assert "broken.png" in found["problems"][0]
    rows = list(csv.DictReader(table.open()))
    assert [bool(row["error"]) for row in rows].count(True) == 1
    assert {row["picture"] for row in rows} == {"0.png", "1.png", "broken.png"}
    assert run(["explain", str(folder / "net.pth"), str(broken)]) == 2


def test_a_grid_says_what_has_no_map(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", str(folder / "net.pth"), str(folder / "pictures" / "0.png"), "--json", "--class", "0"]
    command += ["--class", "2", "--method", "grad-cam", "--method", "le-grad", "--layer", "features.12"]
    assert run([*command, "-o", str(tmp_path / "g.png"), "--maps", str(tmp_path / "m.npz")]) == 0
    found = report(capsys)
    assert [one["target"]["index"] for one in found["explanations"]] == [0, 2]
    assert "le-grad at features.12" in found["problems"][0]
    with np.load(tmp_path / "m.npz") as arrays:
        assert sorted(arrays) == sorted(f"{n:04d}_{name}" for n in (0, 1) for name in ("raw", "heat", "logits"))


def test_one_picture_through_several_checkpoints(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = str(folder / "pictures" / "0.png")
    command = ["explain", str(folder / "net.pth"), picture, "--series", str(folder / "later.pth"), "--class", "0"]
    assert run([*command, "-o", str(tmp_path / "strip.png"), "--csv", str(tmp_path / "t.csv"), "--json"]) == 0
    first, second = report(capsys)["explanations"]
    assert first["raw_maximum"] != second["raw_maximum"]
    assert [row["checkpoint"] for row in csv.DictReader((tmp_path / "t.csv").open())] == ["net.pth", "later.pth"]
    strip = Image.open(tmp_path / "strip.png")
    assert strip.width > 2 * 224 > strip.height - 100
    assert run(["explain", str(folder / "later.pth"), picture, "--class", "0", "--json"]) == 0
    assert report(capsys)["explanation"]["raw_maximum"] == second["raw_maximum"]


def test_trust_is_measured_on_request(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mask = tmp_path / "mask.png"
    Image.new("L", (90, 70), 255).save(mask)
    picture = str(folder / "pictures" / "0.png")
    assert run(["explain", str(folder / "later.pth"), picture, "--trust", "--mask", str(mask), "--json"]) == 0
    trust = report(capsys)["trust"]
    assert [row["of"] for row in trust["rows"]] == ["grad-cam", "random", "centre", "edges"]
    assert dict(trust["rows"][1]["values"])["energy"] == 1.0  # the mask is the whole picture
    assert trust["agreement"]["methods"][0] == "grad-cam"
    # Measured as it is shown.
    command = ["explain", str(folder / "later.pth"), picture, "--trust", "--augment"]
    assert run([*command, "--json"]) == 0
    smoothed = report(capsys)["trust"]
    assert smoothed["options"]["augmented"] and smoothed["rows"][0] != trust["rows"][0]
    assert smoothed["rows"][2]["curves"] == trust["rows"][2]["curves"]
    assert run(command) == 0
    says = " ".join(capsys.readouterr().out.split())
    # The network is untrained, and told so before anything is said of its map.
    assert "hardly depends on the picture" in says and "Forgotten down to" in says and "Other method" in says
    Image.new("L", (9, 7), 255).save(mask)
    assert run(["explain", str(folder / "later.pth"), picture, "--trust", "--mask", str(mask)]) == 2
    assert "The mask has 9 x 7 pixels, the picture 90 x 70" in capsys.readouterr().err


def test_lists_and_the_estimate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--list-methods", "--json"]) == 0
    assert "le-grad" in [one["id"] for one in report(capsys)["methods"]]
    assert run(["explain", str(folder / "net.pth"), "--list-layers", "--json"]) == 0
    layers = report(capsys)["layers"]
    assert layers[0]["rank"] == 1
    picture = str(folder / "pictures" / "0.png")
    command = ["explain", str(folder / "net.pth"), picture, "--method", "score-cam", "--layer", layers[0]["path"]]
    assert run([*command, "--estimate", "--json"]) == 0
    assert dict(report(capsys)["estimate"]["by_method"])["score-cam"] == layers[0]["shape"][0]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--method", "gradcam"], "There is no method 'gradcam'"),
        (["--layer", "features.99"], "no layer 'features.99'"),
        (["--class", "4"], "4 classes, numbered 0 to 3; there is no class 4"),
        (["--fuse", "sum"], "There is no fusion 'sum'"),
        (["--colour-map", "rainbow"], "no colour map 'rainbow'"),
        (["--box", "1,2"], "'1,2' is no box"),
        (["--box", "1"], "holds no boxes"),
        (["--pixels-of", "1"], "no scores for pixels"),
        (["--pixels-of", "1", "--box", "1"], "one of them"),
        (["--preprocessing", "{}"], "'mean' is missing"),
        (["--preprocessing", '{"size": 64, "mean": 0.5, "std": 0.5}'], "has 1 means; this model takes 3 channels"),
        (["--names", "nowhere.txt"], "There is no file nowhere.txt"),
        (["--mask", "m.png"], "A mask is for measuring"),
        (["--trust", "--class", "0", "--class", "1"], "Trust is measured of one map"),
        (["--fuse", "mean", "--class", "0", "--class", "1"], "one method and one class"),
        (["--series", "x.pth", "--class", "0", "--class", "1"], "one class"),
    ],
)
def test_what_means_nothing_is_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], asked: list[str], says: str
) -> None:
    assert run(["explain", str(folder / "net.pth"), str(folder / "pictures" / "0.png"), *asked]) == 2
    assert says in capsys.readouterr().err


def test_no_file_no_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 2
    assert run(["explain", str(folder / "net.pth")]) == 2
    assert "Which picture?" in capsys.readouterr().err
    assert run(["explain", str(folder / "net.pth"), str(folder / "none.png")]) == 2
    assert "There is no picture" in capsys.readouterr().err


def test_names_and_preprocessing_can_be_given(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.txt"
    names.write_text("one\ntwo\nthree\nfour\n")
    command = ["explain", str(folder / "net.pth"), str(folder / "pictures" / "0.png"), "--json", "--class", "2"]
    steps = '{"resize": [48, 40], "crop": null, "mean": [0.1, 0.2, 0.3], "std": [1, 1, 1]}'
    assert run([*command, "--names", str(names), "--preprocessing", steps]) == 0
    found = report(capsys)["explanation"]
    assert found["target"]["name"] == "three"
    assert found["preprocessing"]["resize"] == [48, 40]
    assert (found["crop"]["width"], found["crop"]["height"]) == (90, 70)


def test_trust_over_a_folder_goes_on_past_a_picture_that_cannot_be_read(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for name in ("0.png", "1.png"):
        (pictures / name).write_bytes((folder / "pictures" / name).read_bytes())
    (pictures / "broken.png").write_bytes((pictures / "0.png").read_bytes()[:200])
    command = ["explain", str(folder / "later.pth"), str(pictures), "--trust"]
    table, home = tmp_path / "trust.csv", tmp_path / "home"
    assert run([*command, "--trust-csv", str(table), "--export", str(home), "--json"]) == 1
    found = report(capsys)
    assert len(found["explanations"]) == 2 and "trust" not in found
    trust = found["trust_of_pictures"]
    assert [row["verdict"] for row in trust["rows"]].count("no map") == 1
    assert trust["groups"][0]["pictures"] == 2 and trust["failures"][0][1] == 1
    assert json.loads((home / "trust.json").read_text()) == trust
    assert table.read_bytes() == (home / "trust.csv").read_bytes()
    assert {row["picture"] for row in csv.DictReader(table.open())} >= {"0.png", "1.png", "broken.png"}
    assert run([*command, "--estimate", "--json"]) == 0
    assert report(capsys)["trust"]["passes"] > 1000


def test_what_trust_cannot_be_asked_of_several_is_a_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explain", str(folder / "net.pth"), str(folder / "pictures")]
    for asked, says in (
        (["--trust", "--class", "0", "--class", "1"], "Trust is measured of one map"),
        (["--trust", "--mask", "m.png"], "A mask is of one picture"),
        (["--trust-csv", str(tmp_path / "t.csv")], "Give --trust too"),
    ):
        assert run([*command, *asked]) == 2
        assert says in capsys.readouterr().err


def test_a_well_known_class_list_is_suggested_and_taken_only_when_it_is_asked_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(3)
    model = torchvision.models.get_model("mobilenet_v3_small", weights=None, num_classes=10).eval()
    facts = {"preprocessing": {"size": 32, "mean": [0.5] * 3, "std": [0.5] * 3}}
    torch.save({"state_dict": model.state_dict(), **facts}, tmp_path / "ten.pth")
    command = ["explain", str(tmp_path / "ten.pth"), str(folder / "pictures" / "0.png"), "--class", "3"]
    assert run([*command, "--json"]) == 0
    found = report(capsys)
    assert found["suggested_names"] == ["cifar-10"] and found["explanation"]["target"]["name"] is None
    assert run(command) == 0
    assert "--names cifar-10" in " ".join(capsys.readouterr().out.split())
    assert run([*command, "--names", "cifar-10", "--json"]) == 0
    found = report(capsys)
    assert "suggested_names" not in found and found["explanation"]["target"]["name"] == "cat"
    assert run(["explain", str(folder / "net.pth"), str(folder / "pictures" / "0.png"), "--json"]) == 0
    assert "suggested_names" not in report(capsys)
