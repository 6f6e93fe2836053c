"""timm's vision transformers and Swins at odd sizes, recorded from timm itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inspector.architectures.build import build_model
from inspector.architectures.families import FAMILIES
from inspector.architectures.families.match import find_families
from inspector.architectures.families.specs import confirm_all
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_spec, target_of
from inspector.architectures.types import Candidate
from inspector.checkpoint.types import Checkpoint
from tests.architectures.families.recordings import Recording, Shapes, recordings

VITS = tuple(recordings("timm_vit"))
(SWIN,) = recordings("timm_swin")
Make = Callable[..., Checkpoint]


def best(make: Make, shapes: Shapes) -> Candidate:
    found = recognise(make(shapes)).best
    assert found is not None
    return found


@pytest.mark.parametrize("recording", VITS, ids=lambda r: r.label)
def test_a_vit_is_identified_with_its_arguments(recording: Recording, checkpoint: Make) -> None:
    config = recording.config
    found = best(checkpoint, recording.shapes)
    spec, options = found.spec, dict(found.spec.options)
    assert (spec.library, spec.name, found.exact, found.missing) == ("timm", "vit", True, ())
    assert (options["hidden"], options["layers"], options["patch"]) == (96, 3, 8) and options["mlp"] == 240
    assert (spec.in_channels, spec.num_classes) == (config.get("in_chans", 3), config.get("num_classes", 1000) or None)
    assert options.get("reg_tokens") == config.get("reg_tokens")
    assert bool(options.get("layer_scale")) == ("init_values" in config)
    assert bool(options.get("qkv_bias")) == config.get("qkv_bias", True)
    # Norms of single heads show how wide a head is; else heads are assumed, here wrongly (32 wide, not 64).
    assert [one.name for one in spec.assumed] == ([] if "qk_norm" in config else ["heads"])
    assert {t.name: t.shape for t in target_of(spec).tensors} == recording.shapes
    assert parse_spec(spec.label) == spec


def test_the_order_is_timms(checkpoint: Make) -> None:
    for recording in (*(r for r in VITS if r.label not in ("distilled",)), SWIN):
        found = best(checkpoint, recording.shapes)
        assert [t.name for t in target_of(found.spec).tensors] == list(recording.shapes), recording.label


def test_a_swin_in_both_repositories_names(checkpoint: Make) -> None:
    found = best(checkpoint, SWIN.shapes)
    label = (
        "timm/swin?num_classes=9&in_channels=3&blocks=1,2,3&heads=2,3,6&mlp=72,144,288&patch=4&stages=3&table=49"
        "&width=24,48,96"
    )
    assert (found.spec.label, found.exact, found.spec.assumed) == (label, True, ())
    # The original merges at a stage's end and keeps the indices of its windows as buffers.
    own = {
        name.replace("layers.1.downsample", "layers.0.downsample")
        .replace("layers.2.downsample", "layers.1.downsample")
        .replace("head.fc.", "head."): shape
        for name, shape in SWIN.shapes.items()
    }
    blocks = [name.removesuffix(".norm1.weight") for name in own if name.endswith(".norm1.weight")]
    own |= {f"{block}.attn.relative_position_index": (16, 16) for block in blocks}
    own |= {"layers.1.blocks.1.attn_mask": (4, 16, 16)}
    found = best(checkpoint, own)
    assert (found.spec.library, found.spec.name, found.exact) == ("microsoft", "swin", True)
    assert {t.name: t.shape for t in target_of(found.spec).tensors} == own


def test_attention_alone_is_no_vision_transformer() -> None:
    own = {name: shape for name, shape in VITS[0].shapes.items() if "mlp" not in name}
    assert find_families(own, FAMILIES) == []


@pytest.mark.parametrize("recording", [r for r in VITS if r.label != "distilled"], ids=lambda r: r.label)
def test_it_is_built_where_timm_is_installed(recording: Recording, checkpoint: Make) -> None:
    pytest.importorskip("timm")
    from timm.models.vision_transformer import VisionTransformer

    torch.manual_seed(0)
    own = VisionTransformer(**recording.config).eval()
    found = best(checkpoint, {name: tuple(tensor.shape) for name, tensor in own.state_dict().items()})
    label = f"{found.spec.label}&heads=3" if found.spec.assumed else found.spec.label
    built = build_model(confirm_all(parse_spec(label)))
    built.load_state_dict(own.state_dict(), strict=True)
    picture = torch.randn(2, found.spec.in_channels or 3, 48, 48)
    with torch.inference_mode():
        assert torch.equal(built(picture), own(picture))


def test_recordings_are_there() -> None:
    assert len(VITS) == 7 and Path(__file__).with_name("recorded").is_dir()
