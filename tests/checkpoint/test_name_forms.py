"""Names by their forms: a pattern that is tried on a form says of it what it says of every name of that form."""

from __future__ import annotations

import re

import pytest

from inspector.architectures.structure import attention
from inspector.checkpoint import adapter_names
from inspector.checkpoint.name_forms import are_alike, form_of, forms_of
from inspector.keys.checks import conventions, numbers, pieces

ASKED_OF_FORMS = (
    conventions._ROTARY,
    conventions._GATED,
    conventions._FUSED,
    conventions._GATE_UP,
    pieces._FLAT,
    numbers._GEMMA,
    adapter_names._ADAPTER,
    attention._POSITIONS,
    attention._DISTANCES,
)
NAMES = (
    "model.layers.11.self_attn.rotary_emb.inv_freq",
    "layers.3.feed_forward.w1.weight",
    "layers.3.feed_forward.w2.weight",
    "layers.12.block_sparse_moe.experts.7.w3.weight",
    "h.10.attn.c_attn.weight",
    "blocks.2.mlp.w12.weight",
    "blocks.2.mlp.fc1_g.weight",
    "_fsdp_wrapped_module.layers.2.flat_param_0",
    "model.layers.0.pre_feedforward_layernorm.weight",
    "unet.blk.12.hada_w1_a",
    "unet.blk.12.lokr_w3",
    "base_model.layers.30.q_proj.lora_A.default.weight",
    "layers.4.lora_down.7.weight",
    "encoder.stages.3.pos_embed",
    "blocks.5.attn.relative_position_bias_table",
    "0.weight",
    "weights.12",
)


def test_numbers_that_are_a_level_become_0_and_others_stay() -> None:
    assert form_of("layers.11.experts.7.w1.weight") == "layers.0.experts.0.w1.weight"
    assert form_of("0.conv2d_3.weight") == "0.conv2d_3.weight"
    assert list(forms_of(["a.1.w", "b.2.w", "a.10.w"])) == ["a.0.w", "b.0.w"]
    # A name may have any character in it.
    odd = ["a.1.w", "b.2\n.3.w", "\n", "", "a.10.w"]
    assert list(forms_of(odd)) == list(dict.fromkeys(map(form_of, odd)))
    assert list(forms_of([])) == []


@pytest.mark.parametrize("pattern", ASKED_OF_FORMS, ids=lambda pattern: pattern.pattern[:40])
def test_what_is_asked_of_forms_holds_of_their_names(pattern: re.Pattern[str]) -> None:
    found = {name for name in NAMES if pattern.search(name)}
    assert found
    assert {name for name in NAMES if pattern.search(form_of(name))} == found


@pytest.mark.parametrize(
    ("ours", "theirs", "alike"),
    [
        (["module.a.w", "module.b.w"], ["a.w", "b.w", "c.w"], True),
        (["a.w", "b.w"], ["net.a.w", "net.b.w"], True),
        (["a.w", "b.w"], ["a.w", "b.v"], False),
        # What they share is no level.
        (["modulea.w", "moduleb.w"], ["a.w", "b.w"], False),
        # One of them is not wrapped.
        (["module.a.w", "b.w"], ["a.w", "b.w"], False),
    ],
)
def test_names_are_alike_behind_the_levels_that_a_side_shares(ours: list[str], theirs: list[str], alike: bool) -> None:
    assert are_alike(ours, theirs) is alike
