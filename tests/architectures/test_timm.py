"""timm's half: what needs no timm, and what is checked against timm where it is installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from inspector.architectures.build import build_model
from inspector.architectures.facts import default_input, transforms
from inspector.architectures.index import load_index, sized
from inspector.architectures.match import patches_of
from inspector.architectures.targets import parse_spec, parse_target
from inspector.errors import MissingLibrary, UnknownArchitecture, UsageError


def test_a_bare_name_is_torchvisions_where_both_have_it() -> None:
    assert parse_spec("resnet50").label == "torchvision/resnet50"
    assert parse_spec("resnetaa50").label == "timm/resnetaa50"
    assert parse_spec("timm/resnet50").label == "timm/resnet50"


def test_a_target_of_timm_needs_no_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    target = parse_target("timm/vit_tiny_patch16_224?num_classes=10&in_channels=1&image_size=384")
    by_name = {t.name: t for t in target.tensors}
    # 24 x 24 patches and the class token; 192 wide.
    assert by_name["pos_embed"].shape == (1, 577, 192) and by_name["head.weight"].shape == (10, 192)
    assert by_name["patch_embed.proj.weight"].shape == (192, 1, 16, 16)
    assert target.heads == ("head.weight", "head.bias") and target.first_convolutions == ("patch_embed.proj.weight",)
    assert by_name["blocks.0.attn.qkv.weight"].is_buffer is False
    assert parse_target("timm/resnet18").tensors[-1].name == "fc.bias"


def test_building_without_timm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingLibrary, match=r"building it needs timm.*pip install timm"):
        build_model(parse_spec("timm/resnetaa50"))


def test_a_head_is_added_where_the_default_has_none() -> None:
    plain, headed = (
        parse_target("timm/aimv2_large_patch14_224"),
        parse_target("timm/aimv2_large_patch14_224?num_classes=9"),
    )
    more = {t.name: t.shape for t in headed.tensors if t.name not in {t.name for t in plain.tensors}}
    assert more == {"head.weight": (9, 1024), "head.bias": (9,)} and plain.heads == ()
    assert set(headed.heads) == set(more)


def test_facts_are_those_of_default_cfg() -> None:
    spec = parse_spec("timm/inception_v3")
    facts = transforms(spec)
    assert default_input(spec) == (3, 299, 299) and facts is not None
    # 299 / 0.875 = 341.7; timm rounds down.
    assert (facts.resize, facts.crop, facts.interpolation) == (341, (299, 299), "bicubic")
    assert facts.source.startswith("timm's default_cfg of inception_v3")
    assert default_input(parse_spec("timm/vit_base_patch16_224?image_size=512&in_channels=1")) == (1, 512, 512)


def test_size_laws_are_undone() -> None:
    for kind in range(4):
        for patches in (1, 2, 7, 14, 37):
            assert patches_of(kind, sized(kind, patches)) == patches
    assert [patches_of(kind, 0) for kind in range(4)] == [0, 0, 0, 0]
    assert patches_of(0, 197) == 0 and patches_of(1, 196) == 0 and patches_of(2, 28) == 0


@pytest.fixture
def timm() -> Any:
    return pytest.importorskip("timm")


@pytest.fixture
def timm_program(timm: Any) -> ModuleType:
    from scripts import index_timm

    return index_timm


def test_the_index_is_of_this_timm(timm: Any) -> None:
    own = {label.partition("/")[2] for label in load_index().builders if label.startswith("timm/")}
    if timm.__version__ != load_index().versions["timm"]:
        pytest.skip(f"timm {timm.__version__} is installed, the index is of {load_index().versions['timm']}")
    assert own == set(timm.list_models())


@pytest.mark.parametrize(
    "name",
    ["resnet18", "vit_tiny_patch16_224", "coatnet_pico_rw_224", "tresnet_m", "aimv2_large_patch14_224", "levit_128"],
)
def test_the_shipped_entries_are_what_the_program_writes(name: str, timm_program: ModuleType) -> None:
    made = list(timm_program.entries_of([name]))
    shipped = [e for e in load_index().entries if (e.library, e.name) == ("timm", name)]
    assert len(made) == len(shipped)
    for one, entry in zip(made, shipped, strict=True):
        assert [(t.name, t.shape, t.dtype, t.is_buffer) for t in entry.tensors] == one["rows"]
        assert list(entry.heads) == one["heads"] and list(entry.channels) == one["channels"]
        assert list(entry.positions) == one.get("positions", [])
        assert entry.facts["mean"] == list(one["facts"]["mean"])


def test_laws_of_the_picture_size_hold_in_every_build_or_are_none(timm_program: ModuleType) -> None:
    law = timm_program.size_law
    assert law((197, 785, 1765), 224, {16}) == (16, 1, 0)  # 14 x 14 patches and a class token, 28 x 28, 42 x 42
    assert law((169, 729, 1681), 224, {3}) == (32, 0, 1)  # relative positions of 7 x 7: 13 x 13
    assert law((15, 31, 47), 256, {3}) == (32, 0, 2)
    assert law((49, 196, 441), 224, {3}) == (32, 0, 0)
    # 384 pixels are 27 patches of 14 and a rest; the kernel has to say 14. CrossViT scales its picture instead.
    assert law((729, 2916, 6724), 384, {14}) == (14, 0, 0)
    assert law((197, 785, 1765), 240, {12, 16}) is None
    assert law((197, 785, 1766), 224, {16}) is None


@pytest.mark.parametrize(
    "target",
    [
        "timm/resnet18?num_classes=5&in_channels=1",
        "timm/vit_tiny_patch16_224?num_classes=3&image_size=96",
        "timm/swin_tiny_patch4_window7_224",
        "timm/eva02_tiny_patch14_224",
        "timm/mobilenetv3_small_050?num_classes=4",
    ],
)
def test_a_built_model_computes_what_timm_computes(target: str, timm: Any) -> None:
    """Rotary tables, index buffers and masks are not in the state dict: they have to be built right."""
    spec = parse_spec(target)
    settings = {
        "num_classes": spec.num_classes,
        "in_chans": spec.in_channels,
        "img_size": dict(spec.options).get("image_size"),
    }
    torch.manual_seed(0)
    theirs = timm.create_model(spec.name, **{k: v for k, v in settings.items() if v is not None}).eval()
    ours = build_model(spec)
    assert all(not p.any() for p in ours.parameters() if p.dim() > 1)
    assert [(t.name, t.shape) for t in parse_target(target).tensors] == [
        (name, tuple(value.shape)) for name, value in theirs.state_dict().items()
    ]
    ours.load_state_dict(theirs.state_dict(), strict=True)
    picture = torch.randn(1, *default_input(spec))
    with torch.inference_mode():
        assert torch.equal(ours(picture), theirs(picture))
    blank = build_model(spec, device="meta")
    assert all(p.is_meta for p in blank.parameters())


def test_what_timm_refuses_is_said(timm: Any) -> None:
    with pytest.raises(UsageError, match="cannot be built"):
        build_model(parse_spec("timm/resnet18?image_size=300"))
    with pytest.raises(UsageError, match='no setting "aux_loss"'):
        build_model(parse_spec("timm/resnet18?aux_loss=true"))
    with pytest.raises(UnknownArchitecture, match="installed timm"):
        from inspector.architectures.types import ArchitectureSpec

        build_model(ArchitectureSpec(library="timm", name="hf-hub:someone/model"))


@pytest.mark.parametrize(
    "name", ["resnet18", "inception_v3", "vit_base_patch16_384", "efficientnet_b0", "deit3_small_patch16_224"]
)
def test_the_published_steps_are_timms_own(name: str, timm: Any) -> None:
    facts = transforms(parse_spec(f"timm/{name}"))
    config = timm.models.get_pretrained_cfg(name)
    steps = timm.data.create_transform(**timm.data.resolve_data_config(pretrained_cfg=config.to_dict())).transforms
    assert facts is not None
    assert (facts.resize, facts.crop) == (steps[0].size, tuple(steps[1].size))
    assert steps[0].interpolation.value == facts.interpolation
    assert (facts.mean, facts.std) == (tuple(config.mean), tuple(config.std))
