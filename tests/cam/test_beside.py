"""Preprocessing and class names from each source: inside the file, and what trainers and libraries lay beside it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from inspector.cam.inputs.classes import class_names, names_in_text
from inspector.cam.inputs.preprocess import infer_preprocessing, prepare, stated_preprocessing
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UsageError
from inspector.readers import open_checkpoint

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]


def opened(folder: Path, *, channels: int = 3, inside: dict[str, object] | None = None, **beside: object) -> Checkpoint:
    """A file with one convolution, what is inside it besides, and what lies beside it."""
    state = {"conv.weight": torch.zeros(2, channels, 3, 3)}
    torch.save({"state_dict": state, **(inside or {})}, folder / "m.pth")
    for name, content in beside.items():
        stem, _, ending = name.rpartition("_")
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{stem}.{ending}").write_text(text)
    return open_checkpoint(folder / "m.pth")


@pytest.fixture
def shown() -> Image.Image:
    return Image.fromarray(np.random.default_rng(2).integers(0, 256, (100, 160, 3), dtype=np.uint8))


def same_as(shown: Image.Image, checkpoint: Checkpoint, *steps: object, mean: object = MEAN, std: object = STD) -> str:
    """Where it comes from; the input is what torchvision's own steps make."""
    found = infer_preprocessing(None, checkpoint)
    assert not found.assumed, found.source
    made, _ = prepare(shown, found)
    expected = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(mean, std)])(shown)
    assert made[0].shape == expected.shape
    assert float((made[0] - expected).abs().max()) <= 1e-5
    return found.source


def resize(size: object, kind: str = "bicubic") -> transforms.Resize:
    return transforms.Resize(size, interpolation=transforms.InterpolationMode(kind), antialias=True)


def test_inside_a_pickle(tmp_path: Path, shown: Image.Image) -> None:
    facts = {"resize": 40, "crop": (32, 36), "mean": MEAN, "std": tuple(STD), "interpolation": "bicubic"}
    for inside in ({"preprocessing": facts}, {"config": {"preprocessing": facts}}):
        checkpoint = opened(tmp_path, inside=inside)
        assert same_as(shown, checkpoint, resize(40), transforms.CenterCrop((32, 36))) == "stated in the file"


PROCESSOR = {"image_mean": MEAN, "image_std": STD, "rescale_factor": 1 / 255, "resample": 3, "do_normalize": True}


@pytest.mark.parametrize(
    ("told", "steps"),
    [
        ({"size": {"height": 40, "width": 48}}, [resize((40, 48))]),
        ({"size": 40}, [resize((40, 40))]),  # ViT as it was written before 4.26
        ({"size": {"shortest_edge": 48}, "crop_size": {"height": 40, "width": 32}, "do_center_crop": True},
         [resize(48), transforms.CenterCrop((40, 32))]),
        ({"size": {"shortest_edge": 48}, "crop_size": 40, "do_center_crop": False}, [resize(48)]),
        ({"size": {"shortest_edge": 48}, "crop_pct": 0.75}, [resize(64), transforms.CenterCrop(48)]),
        ({"size": {"shortest_edge": 384}, "crop_pct": 0.875}, [resize((384, 384))]),
        ({"size": {"height": 40, "width": 40}, "resample": 2}, [resize((40, 40), "bilinear")]),
        ({"size": {"height": 40, "width": 40}, "do_resize": False, "do_center_crop": True, "crop_size": 24},
         [transforms.CenterCrop(24)]),
    ],
)  # fmt: skip
def test_a_processor_of_transformers(
    tmp_path: Path, shown: Image.Image, told: dict[str, object], steps: list[object]
) -> None:
    checkpoint = opened(tmp_path, preprocessor_config_json=PROCESSOR | told)
    assert "preprocessor_config.json" in same_as(shown, checkpoint, *steps)


@pytest.mark.parametrize(
    "odd",
    [{"rescale_factor": 1 / 127.5}, {"do_rescale": False}, {"do_normalize": False}, {"rescale_offset": True},
     {"resample": 0}, {"image_std": [0.1, 0.0, 0.1]}, {"size": {"height": 10**7, "width": 40}}],
)  # fmt: skip
def test_a_processor_that_does_something_else_is_not_followed(tmp_path: Path, odd: dict[str, object]) -> None:
    told = PROCESSOR | {"size": {"height": 40, "width": 40}} | odd
    assert infer_preprocessing(None, opened(tmp_path, preprocessor_config_json=told)).assumed


def test_a_folder_of_transformers(tmp_path: Path, shown: Image.Image) -> None:
    opened(
        tmp_path,
        preprocessor_config_json=PROCESSOR | {"size": {"height": 40, "width": 40}},
        config_json={"id2label": {"1": "dog", "0": "cat"}},
    )
    checkpoint = open_checkpoint(tmp_path)
    same_as(shown, checkpoint, resize((40, 40)))
    assert class_names(None, checkpoint) == ("cat", "dog")


@pytest.mark.parametrize("nested", [True, False])
def test_timms_configuration(tmp_path: Path, shown: Image.Image, nested: bool) -> None:
    facts = {
        "input_size": [3, 48, 48],
        "crop_pct": 0.9,
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
        "interpolation": "bicubic",
    }
    told = {"architecture": "resnet50", "label_names": ["a", "b"]} | ({"pretrained_cfg": facts} if nested else facts)
    checkpoint = opened(tmp_path, config_json=told)
    steps = [resize(53), transforms.CenterCrop(48)]  # floor(48 / 0.9)
    assert "timm" in same_as(shown, checkpoint, *steps, mean=[0.5] * 3, std=[0.5] * 3)
    assert class_names(None, checkpoint) == ("a", "b")


def test_timms_squash_and_what_is_not_followed(tmp_path: Path, shown: Image.Image) -> None:
    facts = {"input_size": [3, 48, 48], "crop_pct": 1.0, "crop_mode": "squash", "mean": MEAN, "std": STD}
    same_as(shown, opened(tmp_path, config_json={"pretrained_cfg": facts}), resize((48, 48)))
    facts["crop_mode"] = "border"
    assert infer_preprocessing(None, opened(tmp_path, config_json={"pretrained_cfg": facts})).assumed


def test_timms_share_above_one_leaves_a_frame(tmp_path: Path, shown: Image.Image) -> None:
    """floor(48 / 1.2) = 40 pixels in the middle of 48; it was taken for the usual share of 0.875."""
    facts = {"input_size": [3, 48, 48], "crop_pct": 1.2, "mean": MEAN, "std": STD}
    checkpoint = opened(tmp_path, config_json={"pretrained_cfg": facts})
    assert "timm" in same_as(shown.resize((40, 40)), checkpoint, resize(40), transforms.CenterCrop(48))


def test_open_clips_configuration(tmp_path: Path, shown: Image.Image) -> None:
    told = {"model_cfg": {"vision_cfg": {"image_size": 48}}, "preprocess_cfg": {"mean": MEAN, "std": STD}}
    assert "open_clip" in same_as(
        shown, opened(tmp_path, open_clip_config_json=told), resize(48), transforms.CenterCrop(48)
    )
    told["preprocess_cfg"] |= {"resize_mode": "squash", "interpolation": "bilinear"}  # type: ignore[operator]
    same_as(shown, opened(tmp_path, open_clip_config_json=told), resize((48, 48), "bilinear"))


def test_what_is_for_other_channels_is_not_taken(tmp_path: Path) -> None:
    told = PROCESSOR | {"size": {"height": 40, "width": 40}}
    found = infer_preprocessing(None, opened(tmp_path, channels=1, preprocessor_config_json=told))
    assert (found.channels, found.assumed) == (1, True)
    grey = told | {"image_mean": [0.1], "image_std": [0.3]}
    found = infer_preprocessing(None, opened(tmp_path, channels=1, preprocessor_config_json=grey))
    assert (found.channels, found.assumed, found.mean) == (1, False, (0.1,))


@pytest.mark.parametrize(
    "inside",
    [
        {"classes": ["cat", "dog"]},
        {"id2label": {0: "cat", 1: "dog"}},
        {"idx_to_class": {0: "cat", 1: "dog"}},
        {"class_to_idx": {"dog": 1, "cat": 0}},
        {"config": {"id2label": {"1": "dog", "0": "cat"}}},
    ],
)
def test_class_names_inside_a_pickle(tmp_path: Path, inside: dict[str, object]) -> None:
    assert class_names(None, opened(tmp_path, inside=inside)) == ("cat", "dog")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("classes_txt", "cat\n\ndog\r\n"),
        ("labels_txt", "\ufeffcat\ndog"),
        ("labels_json", ["cat", "dog"]),
        ("classes_json", {"0": "cat", "1": "dog"}),
        ("class_names_json", {"cat": 0, "dog": 1}),
    ],
)
def test_class_names_beside_the_file(tmp_path: Path, name: str, content: object) -> None:
    assert class_names(None, opened(tmp_path, **{name: content})) == ("cat", "dog")


@pytest.mark.parametrize(
    ("name", "content"),
    [("labels_json", {"0": "cat", "2": "dog"}), ("labels_json", "{"), ("labels_json", [1, 2]), ("classes_txt", " \n"),
     ("class_names_json", {"cat": 0, "dog": 0}), ("labels_json", {"boxes": [{"x": 1}]})],
)  # fmt: skip
def test_files_that_name_no_classes_are_left_alone(tmp_path: Path, name: str, content: object) -> None:
    checkpoint = opened(tmp_path, **{name: content})
    assert class_names(None, checkpoint) == ()
    assert checkpoint.tensors


def test_a_thousand_names_come_whole(tmp_path: Path) -> None:
    names = [f"class number {n}" for n in range(1000)]
    assert class_names(None, opened(tmp_path, classes_txt="\n".join(names))) == tuple(names)
    assert class_names(None, opened(tmp_path, inside={"id2label": dict(enumerate(names))})) == tuple(names)


def test_names_that_somebody_gives() -> None:
    assert names_in_text("a\n b \n\n") == ("a", "b")
    assert names_in_text('["a", "b"]') == ("a", "b")
    assert names_in_text('{"0": "a"}', ".json") == ("a",)
    assert names_in_text("[broken", ".json") == ()


def test_preprocessing_that_somebody_gives() -> None:
    found = stated_preprocessing({"size": 32, "mean": 0.5, "std": 0.5}, "by hand")
    assert (found.resize, found.crop, found.channels, found.source) == (32, (32, 32), 1, "by hand")
    for wrong in (None, [], {"mean": 0.5}, {"mean": 0.5, "std": 0}, {"mean": 0.5, "std": 1, "size": -3}):
        with pytest.raises(UsageError, match="This preprocessing cannot be used"):
            stated_preprocessing(wrong, "by hand")
