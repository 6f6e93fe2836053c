"""`inspector trace`: a file, an architecture, a picture, tensors from files; what it prints and how it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision import models

from inspector.cli.main import run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    torch.manual_seed(0)
    model = models.squeezenet1_1(weights=None, num_classes=3)
    torch.save(model.state_dict(), folder / "secret_weights.pth")
    bad = model.state_dict()
    bad["features.0.weight"][0] = float("nan")
    torch.save(bad, folder / "bad.pth")
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)).save(
        folder / "holiday.png"
    )
    np.save(folder / "x.npy", np.random.default_rng(0).random((1, 3, 64, 64), dtype=np.float32))
    np.savez(folder / "x.npz", x=np.zeros((1, 3, 64, 64), dtype=np.float32))
    save_file({"x": torch.rand(1, 64, 64, 3)}, folder / "last.safetensors")
    torch.save({"x": torch.rand(1, 3, 64, 64, dtype=torch.float64)}, folder / "double.pt")
    return folder


def test_a_picture_goes_through_a_file_and_its_name_is_not_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(place / "secret_weights.pth"), "--image", str(place / "holiday.png")]) == 0
    out = capsys.readouterr().out
    assert "1x3x224x224" in out and "a picture, prepared by" in out and "features" in out
    assert "holiday" not in out and str(place) not in out and "secret_weights" not in out


@pytest.mark.parametrize(
    ("options", "code", "cause"),
    [
        (["--input-size", "3x64x64"], 0, None),
        (["--input-size", "3x64x64", "--train", "--batch", "2"], 0, None),
        (["--input-size", "1x64x64"], 1, "grey-picture"),
        (["--input-size", "3x8x8"], 1, "input-too-small"),
        (["--input", "x.npy"], 0, None),
        (["--input", "x.npz", "--fail-on", "error"], 0, None),
        (["--input", "last.safetensors"], 1, "channels-last"),
        (["--input", "double.pt"], 1, "type"),
        (["--input-size", "1x64x64", "--fail-on", "error"], 1, "grey-picture"),
    ],
)
def test_json_and_exit_codes(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    cause: str | None,
) -> None:
    monkeypatch.chdir(place)
    assert run(["trace", "secret_weights.pth", *options, "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert (report["diagnosis"] or {}).get("cause") == cause
    assert report["training"] is ("--train" in options)
    if "--batch" in options:
        assert report["inputs"][0][1]["shape"] == [2, 3, 64, 64]


def test_a_bad_value_is_a_finding_and_exits_with_1(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(place / "bad.pth"), "--input-size", "3x64x64"]) == 1
    assert "features.0 (Conv2d) is the first to give" in " ".join(capsys.readouterr().out.split())


def test_an_architecture_is_run_by_shapes_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "torchvision/resnet18"]) == 0
    out = capsys.readouterr().out
    assert "shapes alone" in out and "usual size" in out and "1x512x7x7" in out
    assert run(["trace", "torchvision/vgg11", "--input-size", "3x16x16"]) == 1
    assert "input-too-small" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        ["--input-size", "3x8x8", "--input", "x.npy"],
        ["--image", "no.png"],
        ["--input", "no.npy"],
        ["--input", "holiday.png"],
        ["--input-size", "0x8"],
    ],
)
def test_what_cannot_be_used_exits_with_2(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    monkeypatch.chdir(place)
    assert run(["trace", "secret_weights.pth", *options]) == 2
    assert capsys.readouterr().err


def test_options_of_a_file_are_refused_for_a_target() -> None:
    assert run(["trace", "torchvision/resnet18", "--state", "ema"]) == 2


def test_the_channels_of_a_module_become_a_picture_file(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, sheet = str(place / "secret_weights.pth"), tmp_path / "maps.png"
    asked = ["trace", file, "--image", str(place / "holiday.png"), "--output", str(sheet)]
    assert run([*asked, "--feature-maps", "features.1", "--most", "6"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "output of features.1 (ReLU), 1x64x111x111" in out and "6 of 64 channels" in out and "own scale" in out
    assert "holiday" not in out and "secret_weights" not in out
    first = np.asarray(Image.open(sheet))
    options = ["--side", "input", "--scale", "shared", "--order", "number", "--colour-map", "grey", "--json"]
    assert run([*asked, "--feature-maps", "features.1:0", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["shown"] == list(range(64)) and report["side"] == "input" and "raw" not in report
    assert np.asarray(Image.open(sheet)).shape != first.shape


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--feature-maps", "features.1"], "Where should the feature maps go?"),
        (["--output", "maps.png"], "--output is for --feature-maps."),
        (["--feature-maps", "features.1", "--output", "maps.jpg"], "maps.jpg does not end in .png."),
        (["--feature-maps", "features.1", "--output", "maps.png", "--colour-map", "jet"], "viridis, cividis, grey"),
        (
            ["--feature-maps", "featres.1", "--output", "maps.png"],
            "The model has no module 'featres.1'. Close: features",
        ),
        (
            ["--feature-maps", "features.1:4", "--output", "maps.png"],
            "called 1 time in this pass; there is no call 5, counted from 1",
        ),
    ],
)
def test_maps_that_cannot_be_are_refused_and_nothing_is_written(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    options: list[str], says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["trace", str(place / "secret_weights.pth"), "--input-size", "3x64x64", *options]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_maps_are_of_a_files_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--feature-maps", "layer4", "--output", str(tmp_path / "maps.png")]
    assert run(["trace", "torchvision/resnet18", *asked]) == 2
    assert "Feature maps are of a file's weights" in capsys.readouterr().err
