"""Models that are built: the same as torchvision's own after a load, and nothing random or uninitialised before it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from inspector.architectures import targets
from inspector.architectures.build import (
    AFTER_OPTIONS,
    BUILDER_OPTIONS,
    OPTIONS,
    build_model,
    check_install,
    first_convolutions,
    spread,
)
from inspector.architectures.targets import parse_spec, target_of
from inspector.errors import BrokenInstall, UnknownArchitecture, UsageError


def peer(name: str, **arguments: object) -> nn.Module:
    torch.manual_seed(5)
    model: nn.Module = torchvision.models.get_model(name, weights=None, **arguments)
    return model.eval()


@pytest.mark.parametrize(
    ("target", "arguments", "side"),
    [
        ("squeezenet1_1?num_classes=4", {"num_classes": 4}, 64),
        ("regnet_y_400mf", {}, 64),
        ("vit_b_32?image_size=64", {"image_size": 64}, 64),
        (
            "googlenet?num_classes=3&aux_logits=false",
            {"num_classes": 3, "aux_logits": False, "init_weights": False},
            64,
        ),
        ("lraspp_mobilenet_v3_large", {"weights_backbone": None}, 64),
    ],
)
def test_a_loaded_model_computes_what_torchvisions_own_computes(
    target: str, arguments: dict[str, object], side: int
) -> None:
    theirs = peer(target.partition("?")[0], **arguments)
    with torch.no_grad():
        for parameter in theirs.parameters():  # some heads begin as zeros, which would compare nothing
            parameter.add_(torch.randn(parameter.shape) * 0.01)
    ours = build_model(parse_spec(target))
    ours.load_state_dict(theirs.state_dict(), strict=True)
    picture = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, found = theirs(picture), ours(picture)
    if isinstance(expected, dict):
        expected, found = expected["out"], found["out"]
    assert torch.equal(expected, found)
    assert expected.std() > 0


def test_a_loaded_detector_computes_what_torchvisions_own_computes() -> None:
    """Anchors are no part of the state dict, so a detector shows whether the rest is real."""
    theirs = peer("ssdlite320_mobilenet_v3_large", weights_backbone=None, num_classes=3)
    ours = build_model(parse_spec("ssdlite320_mobilenet_v3_large?num_classes=3"))
    ours.load_state_dict(theirs.state_dict(), strict=True)
    picture = [torch.rand(3, 320, 320, generator=torch.Generator().manual_seed(1))]
    with torch.no_grad():
        expected, found = theirs(picture)[0], ours(picture)[0]
    assert len(expected["boxes"]) > 0
    for key in ("boxes", "scores", "labels"):
        assert torch.equal(expected[key], found[key])


@pytest.mark.parametrize("name", ["resnet18", "vit_b_32", "swin_t", "inception_v3", "ssd300_vgg16", "regnet_x_400mf"])
def test_nothing_is_random_before_the_load(name: str) -> None:
    """Random numbers are neither drawn nor left over: two builds agree and most parameters are zero."""
    before = torch.random.get_rng_state()
    one, two = build_model(parse_spec(name)), build_model(parse_spec(name))
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = list(zip(one.state_dict().values(), two.state_dict().values(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not one.training and all(p.requires_grad and p.device.type == "cpu" for p in one.parameters())
    weights = [p for n, p in one.named_parameters() if p.dim() >= 2]
    assert sum(int(torch.count_nonzero(p)) for p in weights) == 0


def test_initialisation_works_again_after_a_build() -> None:
    build_model(parse_spec("resnet18"))
    assert nn.Linear(8, 8).weight.abs().sum() > 0
    assert torch.empty(3, device="meta").device.type == "meta"


@pytest.mark.parametrize(
    "name", ["resnet18", "regnet_y_400mf", "fasterrcnn_resnet50_fpn?frozen_norm=true", "raft_small"]
)
def test_on_meta_there_is_no_memory(name: str) -> None:
    model = build_model(parse_spec(name), device="meta")
    assert {p.device.type for p in model.parameters()} == {"meta"} and not model.training


@pytest.mark.parametrize(
    "target",
    [
        "resnet18?num_classes=4&in_channels=1",
        "convnext_tiny?in_channels=4",
        "vit_b_16?in_channels=2&image_size=384",
        "inception_v3?in_channels=1&num_classes=2",
        "fasterrcnn_resnet50_fpn?num_classes=5&frozen_norm=true&in_channels=1",
        "fcn_resnet50?aux_loss=true&num_classes=3",
        "raft_small?in_channels=1",
        "r3d_18?in_channels=1",
    ],
)
def test_the_model_has_the_names_and_shapes_of_the_target(target: str) -> None:
    spec = parse_spec(target)
    built = build_model(spec, device="meta").state_dict()
    assert [(k, tuple(v.shape)) for k, v in built.items()] == [(t.name, t.shape) for t in target_of(spec).tensors]


def test_other_input_channels_run() -> None:
    with torch.no_grad():
        assert build_model(parse_spec("resnet18?in_channels=1&num_classes=3"))(torch.rand(2, 1, 64, 64)).shape == (2, 3)
        # GoogLeNet's rescaling of the three colours is switched off with them.
        spec = parse_spec("googlenet?in_channels=1&transform_input=true&aux_logits=false")
        assert build_model(spec)(torch.rand(1, 1, 64, 64)).shape == (1, 1000)


def test_a_detectors_normalisation_follows_its_channels() -> None:
    model = build_model(parse_spec("fasterrcnn_mobilenet_v3_large_320_fpn?in_channels=1"), device="meta")
    assert model.transform.image_mean == pytest.approx([(0.485 + 0.456 + 0.406) / 3])
    assert spread((1.0, 2.0, 6.0), 2) == (3.0, 3.0) and spread((1.0, 2.0, 6.0), 3) == (1.0, 2.0, 6.0)


def test_frozen_norms_have_the_epsilon_of_the_trained_detectors() -> None:
    model = build_model(parse_spec("retinanet_resnet50_fpn?frozen_norm=true&frozen_epsilon=0"), device="meta")
    norms = [m for m in model.modules() if isinstance(m, torchvision.ops.FrozenBatchNorm2d)]
    assert len(norms) == 53 and {norm.eps for norm in norms} == {0.0}
    assert not any(isinstance(m, nn.BatchNorm2d) for m in model.backbone.modules())


def test_first_convolutions_are_found_where_the_picture_arrives() -> None:
    def of(name: str) -> tuple[str, ...]:
        return first_convolutions(build_model(parse_spec(name), device="meta"))

    assert of("resnet18") == ("conv1",)
    assert of("maskrcnn_resnet50_fpn") == ("backbone.body.conv1",)
    assert of("raft_small") == ("feature_encoder.convnormrelu.0", "context_encoder.convnormrelu.0")


def test_unknown_names_and_settings_are_said() -> None:
    with pytest.raises(UnknownArchitecture, match=r'no architecture "resnet-18".*Did you mean.*resnet18'):
        build_model(targets.ArchitectureSpec(library="torchvision", name="resnet-18"))
    with pytest.raises(UnknownArchitecture, match='Models of "keras" cannot be built'):
        build_model(targets.ArchitectureSpec(library="keras", name="resnet18"))
    with pytest.raises(UsageError, match='resnet18 has no setting "aux_loss"'):
        build_model(parse_spec("resnet18?aux_loss=true"))
    with pytest.raises(UsageError, match="cannot be built"):
        build_model(parse_spec("vit_b_16?image_size=100"), device="meta")
    with pytest.raises(UsageError, match='"cpu" or "meta", not on "cuda"'):
        build_model(parse_spec("resnet18"), device="cuda")


def test_targets_know_the_same_settings() -> None:
    assert sorted((*targets.FLAGS, *targets.NUMBERS, *targets.FRACTIONS)) == sorted(OPTIONS)
    assert set(OPTIONS) == {*BUILDER_OPTIONS, *AFTER_OPTIONS}


def test_a_torchvision_for_another_torch_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
    _hide_torchvision(monkeypatch)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BrokenInstall, match=r"does not fit torch .*operator torchvision::nms does not exist"):
        check_install()


def test_an_absent_torchvision_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    _hide_torchvision(monkeypatch)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(BrokenInstall, match="torchvision cannot be imported beside torch"):
        check_install()


def test_the_real_install_is_fine() -> None:
    check_install.cache_clear()
    check_install()


def _hide_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n == "torchvision" or n.startswith("torchvision.")]:
        monkeypatch.delitem(sys.modules, name)
    check_install.cache_clear()
