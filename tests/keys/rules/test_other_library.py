"""Another library's names: by the index's own names of both, both ways; nothing where it does not speak for all."""

from __future__ import annotations

import pytest
import torch
import torchvision

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Evidence
from inspector.readers import open_checkpoint
from tests.raw import prove_bytes

# (torchvision's, timm's, torchvision's names by timm's as the two libraries' sources have them)
PAIRS = [
    (
        "vit_b_16",
        "vit_base_patch16_224",
        {
            "blocks.7.attn.qkv.bias": "encoder.layers.encoder_layer_7.self_attention.in_proj_bias",
            "blocks.11.norm2.weight": "encoder.layers.encoder_layer_11.ln_2.weight",
            "norm.bias": "encoder.ln.bias",
        },
    ),
    (
        "swin_t",
        "swin_tiny_patch4_window7_224",
        {
            "layers.1.downsample.reduction.weight": "features.2.reduction.weight",
            "layers.2.blocks.5.mlp.fc2.bias": "features.5.5.mlp.3.bias",
            "head.fc.weight": "head.weight",
        },
    ),
    (
        "convnext_tiny",
        "convnext_tiny",
        {
            "stages.3.downsample.1.weight": "features.6.1.weight",
            "stages.0.blocks.2.gamma": "features.1.2.layer_scale",
            "head.norm.weight": "classifier.0.weight",
        },
    ),
    ("vgg11_bn", "vgg11_bn", {"pre_logits.fc2.weight": "classifier.3.weight", "features.0.bias": "features.0.bias"}),
    (
        "regnet_x_400mf",
        "regnetx_004_tv",
        {
            "stem.bn.running_var": "stem.1.running_var",
            "s1.b1.conv1.conv.weight": "trunk_output.block1.block1-0.f.a.0.weight",
            "s4.b12.conv3.bn.bias": "trunk_output.block4.block4-11.f.c.1.bias",
            "s2.b1.downsample.conv.weight": "trunk_output.block2.block2-0.proj.0.weight",
            "head.fc.bias": "fc.bias",
        },
    ),
    ("regnet_y_400mf", "regnety_004", {"s3.b2.se.fc2.bias": "trunk_output.block3.block3-1.f.se.fc2.bias"}),
]


def names(text):
    return {t.name: t.shape for t in parse_target(text).tensors}


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize(("ours", "theirs", "known"), PAIRS)
def test_both_ways_place_everything_and_undo_each_other(ours, theirs, known, prefix, file_of):
    one, other = f"torchvision/{ours}", f"timm/{theirs}"
    there = diagnose(file_of({prefix + n: s for n, s in names(one).items()}), parse_target(other)).plan
    back = diagnose(file_of({prefix + n: s for n, s in names(other).items()}), parse_target(one)).plan
    assert there.complete and back.complete and not there.ambiguities
    went = {s.target: s.source.removeprefix(prefix) for s in there.steps if s.target and s.source}
    came = {s.source.removeprefix(prefix): s.target for s in back.steps if s.target and s.source}
    assert went == came and known.items() <= went.items()
    assert {kind for kind, _ in there.certificate} <= {Evidence.EXACT_NAME, Evidence.RULE}


def test_file_code_and_proof_agree_bit_for_bit(tmp_path, monkeypatch):
    torch.manual_seed(0)
    own = torchvision.models.vit_b_32(num_classes=3).state_dict()
    torch.save(own, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), parse_target("timm/vit_base_patch32_224?num_classes=3")
    plan = diagnose(checkpoint, goal).plan
    made = apply_plan(checkpoint, plan)
    assert prove_bytes(checkpoint, plan, made).passed
    assert torch.equal(
        made["blocks.3.attn.qkv.weight"], own["encoder.layers.encoder_layer_3.self_attention.in_proj_weight"]
    )

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    code = python_code(plan, file_name="a.pth")
    exec(code, {"model": model})
    assert set(model.held) == set(made) and all(torch.equal(model.held[n], t) for n, t in made.items())
    assert "renamed = {" not in code and len(code.splitlines()) < 40


@pytest.mark.parametrize(
    "change",
    [
        lambda n: None if n.endswith("ln_2.weight") else n,  # parts are missing
        lambda n: n.replace("encoder_layer_3.", "encoder_layer_33."),  # a hole in the numbers
        lambda n: n.replace("mlp.0", "mlp.1"),  # another network inside
    ],
)
def test_it_speaks_for_the_whole_file_or_not_at_all(change, file_of):
    own = {changed: s for n, s in names("torchvision/vit_b_16").items() if (changed := change(n)) is not None}
    plan = diagnose(file_of(own), parse_target("timm/vit_base_patch16_224")).plan
    assert plan is None or not plan.complete or "other-library" not in [use.id for use in plan.rules]


def test_another_depth_or_width_is_not_forced(file_of):
    for ours, theirs in (
        ("vit_b_16", "vit_small_patch16_224"),
        ("vit_b_16", "vit_large_patch16_224"),
        ("swin_t", "swin_small_patch4_window7_224"),
    ):
        plan = diagnose(file_of(names(f"torchvision/{ours}")), parse_target(f"timm/{theirs}")).plan
        assert plan is None or not plan.complete


def test_a_target_of_its_own_library_needs_nothing(file_of):
    for name in ("torchvision/vit_b_16", "timm/swin_tiny_patch4_window7_224", "torchvision/vgg11_bn"):
        assert diagnose(file_of(names(name)), parse_target(name)).plan.rules == ()
