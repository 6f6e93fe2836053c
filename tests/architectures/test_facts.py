"""Published facts against torchvision's own enums and models."""

from __future__ import annotations

import pytest
import torch
from torchvision.models import get_weight

from inspector.architectures.build import build_model
from inspector.architectures.facts import categories, default_frames, default_input, smallest_input, transforms
from inspector.architectures.official import find_official
from inspector.architectures.targets import parse_spec
from inspector.checkpoint.types import Origin


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("resnet18", (3, 224, 224)),
        ("resnet18?in_channels=1", (1, 224, 224)),
        ("inception_v3", (3, 299, 299)),
        ("efficientnet_b4", (3, 380, 380)),
        ("swin_v2_t", (3, 256, 256)),
        ("vit_h_14", (3, 224, 224)),
        ("vit_h_14?image_size=518", (3, 518, 518)),
        ("fcn_resnet50", (3, 520, 520)),
        ("ssd300_vgg16", (3, 300, 300)),
        ("maskrcnn_resnet50_fpn", (3, 800, 800)),
        ("r3d_18", (3, 112, 112)),
        ("raft_small", (3, 520, 960)),
    ],
)
def test_default_inputs(target: str, expected: tuple[int, int, int]) -> None:
    assert default_input(parse_spec(target)) == expected


@pytest.mark.parametrize("target", ["inception_v3", "vit_h_14?image_size=518", "vit_h_14", "swin_v2_t", "maxvit_t"])
def test_a_model_accepts_its_default_input(target: str) -> None:
    spec = parse_spec(target)
    with torch.no_grad():
        answer = build_model(spec, device="meta")(torch.empty((1, *default_input(spec)), device="meta"))
    assert answer.shape == (1, 1000)


def test_frames_are_for_video_alone() -> None:
    assert default_frames(parse_spec("mvit_v2_s")) == 16
    assert default_frames(parse_spec("resnet18")) is None


def test_the_smallest_input_is_the_published_one() -> None:
    assert smallest_input(parse_spec("inception_v3")) == (75, 75)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("resnet18", "ResNet18_Weights.IMAGENET1K_V1"),
        ("resnet50", "ResNet50_Weights.IMAGENET1K_V2"),
        ("vit_b_16?image_size=384", "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1"),
        ("vit_h_14", "ViT_H_14_Weights.IMAGENET1K_SWAG_LINEAR_V1"),
    ],
)
def test_transforms_are_the_published_ones(target: str, source: str) -> None:
    facts = transforms(parse_spec(target))
    preset = get_weight(source).transforms()
    assert facts is not None and facts.source == source
    assert (facts.resize, facts.crop) == (preset.resize_size[0], (preset.crop_size[0],) * 2)
    assert (list(facts.mean), list(facts.std)) == (preset.mean, preset.std)
    assert facts.interpolation == preset.interpolation.value


def test_an_official_files_own_transforms_are_used() -> None:
    official = find_official(Origin(name="x", nbytes=1, sha256="0676ba61" + "0" * 56))
    assert official is not None and official.name == "ResNet50_Weights.IMAGENET1K_V1"
    facts = transforms(official)
    assert facts is not None and (facts.resize, facts.source) == (256, "ResNet50_Weights.IMAGENET1K_V1")


def test_class_names_belong_to_the_published_class_count() -> None:
    assert categories(parse_spec("resnet18"))[0] == "tench"
    assert categories(parse_spec("resnet18?num_classes=1000"))[0] == "tench"
    assert categories(parse_spec("resnet18?num_classes=10")) == ()
    assert categories(parse_spec("fcn_resnet50"))[:2] == ("__background__", "aeroplane")
    assert categories(parse_spec("raft_small")) == ()
