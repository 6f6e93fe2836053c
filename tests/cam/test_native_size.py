"""A network is shown pictures at the size that its cost is counted at, with the numbers that its own kind is trained
with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from inspector.architectures.build import build_model
from inspector.architectures.facts import default_input, task_of
from inspector.architectures.index import load_index
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec
from inspector.architectures.types import ArchitectureSpec, Candidate, Recognition
from inspector.cam.inputs.picture import input_shape
from inspector.cam.inputs.preprocess import infer_preprocessing, prepare
from inspector.cli.main import run
from inspector.readers import open_checkpoint

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CIFAR10 = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
RESNET = "cifar/resnet?num_classes=10&in_channels=3&blocks=1&width=8,8,16,32"
WIDE = "cifar/resnet_wide?num_classes=10&in_channels=3&blocks=1&width=8,8,16,16,32"
BOTTLENECK = "cifar/resnet_bottleneck?num_classes=10&in_channels=3&blocks=1&inner=8,8,8,8&width=8,16,16,16,32"
VGG = "cifar/vgg?num_classes=10&in_channels=3"
UNET = "milesial/unet?num_classes=3&in_channels=3&depth=1&down=4,8&joined=8&middle=4&transposed=True&up=4"
VIT = "torchvision/vit?num_classes=7&in_channels=3&hidden=64&layers=2&mlp=96&patch=12&positions=17&heads=1"


FOLDER = os.environ.get("INSPECTOR_OUTSIDE_FILES", "")


def recognised(spec: ArchitectureSpec) -> Recognition:
    candidate = Candidate(
        spec=spec, twins=(), matched=(), missing=(), extra=(), reshaped=(), wrapper="", score=1.0, exact=True, says=""
    )
    return Recognition(state_dict=(), candidates=(candidate,), official=None, findings=(), says="")


def file_of(path: Path, label: str, **more: object) -> Path:
    """Seeded weights of an architecture, as a training loop saves them."""
    state = build_model(parse_spec(label)).state_dict()
    draw = torch.Generator().manual_seed(2)
    for tensor in state.values():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand(tensor.shape, generator=draw) * 0.5 + 0.1)
    torch.save({"state_dict": state, **more}, path)
    return path


@pytest.fixture
def shown() -> Image.Image:
    return Image.fromarray(np.random.default_rng(4).integers(0, 256, (90, 130, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("label", "numbers"),
    [(RESNET, IMAGENET), (WIDE, CIFAR10), (BOTTLENECK, CIFAR10), (VGG, CIFAR10)],
    ids=["resnet", "wide", "bottleneck", "vgg"],
)
def test_a_network_for_small_pictures_gets_them_small(
    shown: Image.Image, label: str, numbers: tuple[tuple[float, ...], tuple[float, ...]]
) -> None:
    """As the trainers have them: akamaster/pytorch_resnet_cifar10 ImageNet's, kuangliu/pytorch-cifar CIFAR-10's."""
    steps = infer_preprocessing(recognised(parse_spec(label)), None)
    assert (steps.resize, steps.crop) == (32, (32, 32))
    assert steps.assumed
    assert "CIFAR-10" in steps.source and steps.source.endswith(", 32 x 32 pixels")
    made, _ = prepare(shown, steps)
    usual = transforms.Compose(
        [transforms.Resize(32), transforms.CenterCrop(32), transforms.ToTensor(), transforms.Normalize(*numbers)]
    )
    assert float((made[0] - usual(shown)).abs().max()) <= 1e-6


def test_a_small_network_for_grey_pictures_keeps_its_size() -> None:
    grey = RESNET.replace("in_channels=3", "in_channels=1")
    steps = infer_preprocessing(recognised(parse_spec(grey)), None)
    assert (steps.channels, steps.resize, steps.crop, steps.mean, steps.std) == (1, 32, (32, 32), (0.5,), (0.5,))
    assert steps.source == "assumed: 1 channel scaled to -1..1, 32 x 32 pixels"


@pytest.mark.parametrize("channels", [3, 1])
def test_a_unet_gets_what_its_own_data_set_makes(channels: int) -> None:
    """Scaled to 0..1, nothing subtracted, for any number of channels."""
    spec = parse_spec(UNET.replace("in_channels=3", f"in_channels={channels}"))
    steps = infer_preprocessing(recognised(spec), None)
    assert (steps.mean, steps.std) == ((0.0,) * channels, (1.0,) * channels)
    assert steps.interpolation == "bicubic"
    assert steps.assumed and "milesial/Pytorch-UNet" in steps.source


def test_a_transformers_position_table_tells_the_size() -> None:
    """17 positions are a class token and 4 x 4 patches of 12 pixels."""
    steps = infer_preprocessing(recognised(parse_spec(VIT)), None)
    assert (steps.resize, steps.crop) == (48, (48, 48))
    assert steps.source == "assumed: ImageNet mean and deviation, 48 x 48 pixels"


def test_every_picture_network_is_explained_at_the_size_that_its_cost_is_counted_at() -> None:
    specs = [ArchitectureSpec(library=entry.library, name=entry.name) for entry in load_index().entries]
    specs += [parse_spec(label) for label in (RESNET, WIDE, BOTTLENECK, VGG, UNET, VIT)]
    checked = 0
    for spec in specs:
        # Detectors resize by themselves; clips and flows are no pictures.
        if task_of(spec) in ("classification", "segmentation", "quantization"):
            steps = infer_preprocessing(recognised(spec), None)
            square = (max(default_input(spec)[1:]),) * 2
            assert input_shape(steps, square) == default_input(spec), spec.label
            checked += 1
    assert checked > 1500


@pytest.mark.parametrize(
    ("label", "resize", "crop", "words"),
    [
        # 448 / 1.15: the picture is smaller than the input, black around it, as timm's own transforms leave it.
        ("timm/volo_d4_448", 389, 448, "volo_d4_448"),
        ("timm/deepseek_vit_412m", 546, 546, "cut at its centre where timm adds borders"),
        ("timm/resnet18", 235, 224, "timm's default_cfg of resnet18"),
    ],
)
def test_a_share_above_one_and_borders_do_not_lose_the_size(label: str, resize: int, crop: int, words: str) -> None:
    steps = infer_preprocessing(recognised(parse_spec(label)), None)
    assert (steps.resize, steps.crop) == (resize, (crop, crop))
    assert words in steps.source


def test_who_states_something_is_heard_first(tmp_path: Path) -> None:
    facts = {"size": 40, "mean": [0.1] * 3, "std": [0.2] * 3}
    checkpoint = open_checkpoint(file_of(tmp_path / "net.pth", RESNET, preprocessing=facts))
    steps = infer_preprocessing(recognise(checkpoint), checkpoint)
    assert (steps.crop, steps.mean, steps.assumed) == ((40, 40), (0.1,) * 3, False)


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run(["explain", *words, "--json"]) == 0
    steps: dict[str, object] = json.loads(capsys.readouterr().out)["explanation"]["preprocessing"]
    return steps


def test_the_command_says_what_is_assumed_and_takes_another(
    tmp_path: Path, shown: Image.Image, capsys: pytest.CaptureFixture[str]
) -> None:
    shown.save(tmp_path / "noise.png")
    words = [str(file_of(tmp_path / "net.pth", RESNET)), str(tmp_path / "noise.png")]
    steps = explained(capsys, *words)
    assert (steps["crop"], steps["assumed"]) == ([32, 32], True)
    assert "akamaster/pytorch_resnet_cifar10" in str(steps["source"])
    given = {"size": 64, "mean": [0.5] * 3, "std": [0.5] * 3}
    steps = explained(capsys, *words, "--preprocessing", json.dumps(given))
    assert (steps["crop"], steps["assumed"], steps["source"]) == ([64, 64], False, "given with --preprocessing")


def test_the_target_that_is_built_tells_the_size_not_the_best_guess(
    tmp_path: Path, shown: Image.Image, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same tensors are a ResNet of torchvision and of timm, which publish different preparations."""
    shown.save(tmp_path / "noise.png")
    file = file_of(tmp_path / "net.pth", "torchvision/resnet18?num_classes=4")
    assert recognise(open_checkpoint(file)).best is not None
    spec = parse_spec("timm/resnet18?num_classes=4")
    wanted = infer_preprocessing(recognised(spec), None)
    assert infer_preprocessing(recognise(open_checkpoint(file)), open_checkpoint(file), spec=spec) == wanted
    assert wanted.resize == 235
    vit = file_of(tmp_path / "vit.pth", VIT)
    assert explained(capsys, str(vit), str(tmp_path / "noise.png"), "--target", VIT)["crop"] == [48, 48]


@pytest.mark.outside
@pytest.mark.skipif(not FOLDER, reason="INSPECTOR_OUTSIDE_FILES names no folder")
@pytest.mark.parametrize("name", ["both.png", "dog_cat.jpg"])
def test_a_cifar_network_sees_the_dog(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """At 224 pixels it answers cat, class 3."""
    folder = Path(FOLDER)
    assert run(["explain", str(folder / "resnet20-12fca82f.th"), str(folder / name), "--json"]) == 0
    target = json.loads(capsys.readouterr().out)["explanation"]["target"]
    assert target["index"] == 5
    assert target["probability"] > 0.99


@pytest.mark.parametrize(("classes", "doubted"), [(10, False), (100, True), (200, True)])
def test_another_number_of_classes_than_the_data_sets_is_said(classes: int, doubted: bool) -> None:
    """Tiny ImageNet has 200 and pictures of 64 pixels; the network is the same."""
    steps = infer_preprocessing(recognised(parse_spec(RESNET.replace("classes=10", f"classes={classes}"))), None)
    assert (f"tells {classes} classes apart, so it was trained on other pictures" in steps.source) is doubted
