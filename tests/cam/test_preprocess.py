"""The numbers and why; and the same input, bit for bit nearly, as torchvision's own transforms make."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.models import ResNet18_Weights, get_weight

from inspector.architectures.types import ArchitectureSpec, Candidate, OfficialFile, Recognition
from inspector.cam.inputs.classes import class_names
from inspector.cam.inputs.preprocess import infer_preprocessing, prepare
from inspector.cam.report import Preprocessing
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import ExplainError


def file_with(*metadata: tuple[str, str], tensors: tuple[tuple[str, tuple[int, ...]], ...] = ()) -> Checkpoint:
    infos = tuple(
        TensorInfo(name=name, path=(name,), shape=shape, dtype="float32", nbytes=0, storage_id=None)
        for name, shape in tensors
    )
    state = StateDict(
        path=(),
        role=StateRole.WEIGHTS,
        why="",
        kind="dict",
        tensors=infos,
        modules=ModuleNode(name="", path=""),
    )
    return Checkpoint(
        origin=Origin(name="x.pth", nbytes=0),
        format="test",
        format_says="test",
        root=Value(kind=ValueKind.MAPPING, type_name="dict", says=""),
        tensors=infos,
        state_dicts=(state,),
        metadata=metadata,
        source=BufferSource(b""),
    )


def recognised(
    name: str,
    *,
    in_channels: int | None = None,
    official: str | None = None,
    categories: tuple[str, ...] = (),
    options: tuple[tuple[str, bool | int | float], ...] = (),
) -> Recognition:
    spec = ArchitectureSpec(library="torchvision", name=name, in_channels=in_channels, options=options)
    candidate = Candidate(
        spec=spec,
        twins=(),
        matched=(),
        missing=(),
        extra=(),
        reshaped=(),
        wrapper="",
        score=1.0,
        exact=True,
        says="",
    )
    file = None if official is None else OfficialFile(name=official, spec=spec, file_name="", categories=categories)
    return Recognition(state_dict=(), candidates=(candidate,), official=file, findings=(), says="")


@pytest.mark.parametrize("size", [(120, 90), (333, 500), (224, 224), (61, 400), (256, 257), (50, 60)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_same_input_as_torchvision(size: tuple[int, int], interpolation: str) -> None:
    pixels = np.random.default_rng(sum(size)).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    numbers = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    expected = transforms.Compose(
        [
            transforms.Resize(100, interpolation=transforms.InterpolationMode(interpolation), antialias=True),
            transforms.CenterCrop(88),
            transforms.ToTensor(),
            transforms.Normalize(**numbers),
        ]
    )(picture)
    steps = Preprocessing(
        resize=100, crop=(88, 88), channels=3, interpolation=interpolation, source="", assumed=False, **numbers
    )
    found, crop = prepare(picture, steps)
    assert found.shape == (1, 3, 88, 88)
    assert (found[0] - expected).abs().max() <= 1e-6
    assert crop.picture_width == size[0]


def test_same_input_as_torchvision_where_the_crop_is_larger_than_the_picture() -> None:
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (41, 30, 3), dtype=np.uint8))
    expected = transforms.Compose([transforms.CenterCrop((60, 35)), transforms.ToTensor()])(picture)
    steps = Preprocessing(
        resize=None,
        crop=(60, 35),
        mean=(0.0,) * 3,
        std=(1.0,) * 3,
        channels=3,
        interpolation="bilinear",
        source="",
        assumed=False,
    )
    found, _ = prepare(picture, steps)
    assert torch.equal(found[0], expected)


def test_same_input_as_the_published_transforms(picture: Image.Image) -> None:
    for name in (
        "ResNet18_Weights.IMAGENET1K_V1",
        "Swin_V2_T_Weights.IMAGENET1K_V1",
        "Inception_V3_Weights.IMAGENET1K_V1",
    ):
        weights = get_weight(name)
        steps = infer_preprocessing(recognised("any", official=name), None)
        found, _ = prepare(picture, steps)
        assert (found[0] - weights.transforms()(picture)).abs().max() <= 1e-6
        assert not steps.assumed
        assert name in steps.source


def test_grey_models_get_one_channel() -> None:
    steps = infer_preprocessing(recognised("resnet18", in_channels=1), None)
    assert (steps.channels, steps.mean, steps.std, steps.crop) == (1, (0.5,), (0.5,), (224, 224))
    assert steps.assumed
    found, _ = prepare(Image.new("RGB", (300, 300), (255, 255, 255)), steps)
    assert found.shape == (1, 1, 224, 224)
    assert found.unique().tolist() == [1.0]
    four = infer_preprocessing(recognised("resnet18", in_channels=4), None)
    with pytest.raises(ExplainError, match="takes 4 channels"):
        prepare(Image.new("RGB", (300, 300)), four)


def test_the_file_speaks_first() -> None:
    facts = {"size": 64, "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}
    official = recognised("resnet18", official="ResNet18_Weights.IMAGENET1K_V1")
    for text in (json.dumps(facts), repr(facts), repr(json.dumps(facts))):
        steps = infer_preprocessing(official, file_with(("preprocessing", text)))
        assert (steps.resize, steps.crop) == (64, (64, 64))
        assert (steps.mean, steps.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
        assert (steps.assumed, steps.source) == (False, "stated in the file")
    prefixed = infer_preprocessing(None, file_with(("config.preprocessing", json.dumps(facts | {"resize": [70, 80]}))))
    assert (prefixed.resize, prefixed.crop) == ((70, 80), (64, 64))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"std": [0.1, 0.0, 0.1]}, "a standard deviation is not above 0"),
        ({"std": [0.1]}, "3 means and 1 standard deviations"),
        ({"size": 10**9}, "no size from 1 to 4096"),
        ({"size": True}, "no size"),
        ({"mean": [0.1, "NaN", 0.1]}, "mean is not finite"),
        ({"mean": "everything"}, "mean is no list"),
        ({"interpolation": "magic"}, "unknown interpolation 'magic'"),
    ],
)
def test_a_statement_that_cannot_be_meant_is_said_and_not_used(changed: dict[str, object], words: str) -> None:
    facts = {"size": 64, "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]} | changed
    steps = infer_preprocessing(None, file_with(("preprocessing", json.dumps(facts))))
    assert steps.assumed
    assert steps.crop == (224, 224)
    assert words in steps.source


def test_recognised_architectures_assume_their_published_transforms() -> None:
    resnet = infer_preprocessing(recognised("resnet18"), None)
    published = ResNet18_Weights.IMAGENET1K_V1.transforms()
    assert (resnet.resize, resnet.crop) == (published.resize_size[0], (published.crop_size[0],) * 2)
    assert resnet.assumed
    assert "ResNet18_Weights.IMAGENET1K_V1" in resnet.source
    assert infer_preprocessing(recognised("inception_v3"), None).crop == (299, 299)
    large = infer_preprocessing(recognised("vit_b_16", options=(("image_size", 384),)), None)
    assert (large.resize, large.crop, large.interpolation) == (384, (384, 384), "bicubic")
    assert infer_preprocessing(recognised("vit_b_16"), None).crop == (224, 224)
    odd = infer_preprocessing(recognised("vit_b_16", options=(("image_size", 64),)), None)
    assert (odd.resize, odd.crop) == (64, (64, 64))
    assert "the file's own size 64 x 64" in odd.source


def test_segmentation_and_detection_see_what_their_published_transforms_make(picture: Image.Image) -> None:
    for name in ("FCN_ResNet50_Weights.COCO_WITH_VOC_LABELS_V1", "FasterRCNN_ResNet50_FPN_Weights.COCO_V1"):
        expected = get_weight(name).transforms()(picture)
        found, _ = prepare(picture, infer_preprocessing(recognised("any", official=name), None))
        assert found[0].shape == expected.shape
        assert float((found[0] - expected).abs().max()) <= 1e-5


def test_nothing_known_is_a_stated_default() -> None:
    steps = infer_preprocessing(None, None)
    assert (steps.resize, steps.crop, steps.mean) == (256, (224, 224), (0.485, 0.456, 0.406))
    assert steps.assumed
    assert "ImageNet" in steps.source
    grey = infer_preprocessing(None, file_with(tensors=(("conv1.weight", (8, 1, 3, 3)),)))
    assert (grey.channels, grey.mean) == (1, (0.5,))


def test_a_picture_too_long_to_be_resized_is_refused() -> None:
    with pytest.raises(ExplainError, match="too long and thin"):
        prepare(Image.new("L", (1, 400_000)), infer_preprocessing(None, None))


def test_an_input_that_no_memory_holds_is_refused() -> None:
    whole = replace(infer_preprocessing(None, None), resize=None, crop=None)
    with pytest.raises(ExplainError, match="input would be 3000 x 2000 pixels, more than 4,194,304"):
        prepare(Image.new("L", (3000, 2000)), whole)


def test_class_names_by_best_evidence() -> None:
    official = recognised("resnet18", official="x", categories=("tench", "goldfish"))
    assert class_names(official, None) == ("tench", "goldfish")
    assert class_names(official, file_with(("classes", '["circle", "square"]'))) == ("circle", "square")
    assert class_names(None, file_with(("class_names", "('a', 'b')"))) == ("a", "b")
    assert class_names(None, file_with(("id2label", '{"1": "dog", "0": "cat"}'))) == ("cat", "dog")
    assert class_names(None, file_with(("hparams.id2label", "{0: 'cat', 1: 'dog'}"))) == ("cat", "dog")
    for nonsense in ('{"0": "cat", "7": "dog"}', "10", "[1, 2]", "[]", "__import__('os').getcwd()", "[" * 10_000):
        assert class_names(None, file_with(("classes", nonsense))) == ()
    assert class_names(recognised("resnet18"), None) == ()
