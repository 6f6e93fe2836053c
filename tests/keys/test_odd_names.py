"""One layer or set under a longer name, beside names that are the target's own: asked about, never read as it."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

GOAL = {f"fc{n}.{own}": shape for n in (1, 2, 3) for own, shape in (("weight", (8, 8)), ("bias", (8,)))}
LAYERS = ("fc2_frozen", "base_fc2", "fc2_client", "global_fc2", "fc2_student")
LEVELS = ("gate", "skip", "probe", "inverse", "decoder", "router")


def asked(report):
    return [question.id for question in report.plan.ambiguities] if report.plan is not None else []


def renamed(before, after, goal=None):
    return {name.replace(before, after): shape for name, shape in (goal or GOAL).items()}


def placed(report):
    return {step.target: step.source for step in report.plan.steps if step.target is not None}


@pytest.mark.parametrize("name", (*LAYERS, *(f"fc2.{level}" for level in LEVELS)))
def test_one_layer_of_a_longer_name_is_asked_about(name, file_of, target_of):
    names = renamed("fc2", name)
    report = diagnose(file_of(names), target_of(GOAL))
    (question,) = asked(report)
    assert question in ("odd-name", "related-names") and not report.plan.complete
    if question == "odd-name":
        yes = diagnose(file_of(names), target_of(GOAL), choose={"odd-name": "as-placed"})
        assert yes.plan.complete and placed(yes)["fc2.weight"] == f"{name}.weight"
        no = diagnose(file_of(names), target_of(GOAL), choose={"odd-name": "leave-out"})
        assert "fc2.weight" not in placed(no)


@pytest.mark.parametrize("name", ["fc2.linear", "fc2.module", "fc2.layer", "fc2_layer", "lin2", "dense2", "linear2"])
def test_a_word_for_the_layer_itself_is_no_doubt(name, file_of, target_of):
    report = diagnose(file_of(renamed("fc2", name)), target_of(GOAL))
    assert "odd-name" not in asked(report)


@pytest.mark.parametrize("name", ["bbox_reg", "value_head", "critic", "teacher_head", "criterion", "gate"])
def test_a_head_of_another_meaning_is_asked_about(name, file_of, target_of):
    goal = {f"layer{n}.conv.weight": (8, 8, 3, 3) for n in range(4)} | {"fc.weight": (5, 8), "fc.bias": (5,)}
    report = diagnose(file_of(renamed("fc.", f"{name}.", goal)), target_of(goal))
    assert not report.plan.complete and (asked(report) or report.plan.needs_accept)


@pytest.mark.parametrize("name", ["head", "classifier", "cls_head", "linear", "logits"])
def test_what_class_heads_are_called_is_no_doubt(name, file_of, target_of):
    goal = {f"layer{n}.conv.weight": (8, 8, 3, 3) for n in range(4)} | {"fc.weight": (5, 8), "fc.bias": (5,)}
    assert asked(diagnose(file_of(renamed("fc.", f"{name}.", goal)), target_of(goal))) == []


def test_all_layers_of_a_longer_name_are_their_authors_way(file_of, target_of):
    report = diagnose(file_of({name.replace("fc", "my_fc"): shape for name, shape in GOAL.items()}), target_of(GOAL))
    assert report.plan.complete and asked(report) == []


def test_a_word_with_a_letter_less_is_the_word(file_of, target_of):
    goal = {f"layers.{n}.{part}.weight": (8, 8) for n in range(3) for part in ("multihead", "output")}
    names = {name.replace("1.multihead", "1.mutihead"): shape for name, shape in goal.items()}
    assert "odd-name" not in asked(diagnose(file_of(names), target_of(goal)))


@pytest.mark.parametrize("name", ["old_decoder", "decoder_best", "decoder_target", "decoder_frozen", "decoder2"])
def test_a_set_of_a_longer_name_than_its_part_is_asked_about(name, tmp_path, target_of):
    part = {f"{n}.{own}": shape for n in (0, 2) for own, shape in (("weight", (8, 8)), ("bias", (8,)))}
    path = tmp_path / "a.pt"
    torch.save({key: {n: torch.randn(shape) for n, shape in part.items()} for key in ("encoder", name)}, path)
    goal = target_of({f"{key}.{n}": shape for key in ("encoder", "decoder") for n, shape in part.items()})
    report = diagnose(open_checkpoint(path), goal)
    assert asked(report) == ["parts-apart"] and not report.plan.complete
    yes = diagnose(open_checkpoint(path), goal, choose={"parts-apart": f"{name}-as-decoder"})
    assert yes.plan.complete


def test_sets_that_all_have_the_word_are_no_doubt(tmp_path, target_of):
    part = {f"{n}.{own}": shape for n in (0, 2) for own, shape in (("weight", (8, 8)), ("bias", (8,)))}
    path = tmp_path / "a.pt"
    torch.save({f"{key}_best": {n: torch.randn(s) for n, s in part.items()} for key in ("encoder", "decoder")}, path)
    goal = target_of({f"{key}.{n}": shape for key in ("encoder", "decoder") for n, shape in part.items()})
    report = diagnose(open_checkpoint(path), goal)
    assert report.plan.complete and asked(report) == []


def block(inner, layers=2):
    goal = {"embed.weight": (8, 5), "head.weight": (3, 8)}
    for n in range(layers):
        goal |= {f"layers.{n}.{name}": shape for name, shape in inner.items()}
        goal |= {f"layers.{n}.fc1.weight": (16, 8), f"layers.{n}.fc2.weight": (8, 16)}
    return goal


TWO_LAYERS = {"{}.0.weight": (12, 8), "{}.0.bias": (12,), "{}.2.weight": (8, 12), "{}.2.bias": (8,)}
OTHER_WORDS = (
    *(("foreground", "background"), ("sender", "receiver"), ("short_conv", "long_conv"), ("drift", "diffusion")),
    *(("input_gate", "forget_gate"), ("shared_expert", "routed_expert"), ("self_net", "cross_net")),
    *(("lora_A", "lora_B"), ("pred_x", "pred_y"), ("r_w_bias", "r_r_bias"), ("spatial_att", "channel_att")),
)


@pytest.mark.parametrize("around", ["", "module."])
@pytest.mark.parametrize(("ours", "theirs"), OTHER_WORDS)
def test_a_word_in_anothers_place_is_asked_about(ours, theirs, around, file_of, target_of):
    file, goal = (block({name.format(word): shape for name, shape in TWO_LAYERS.items()}) for word in (ours, theirs))
    file = {around + name: shape for name, shape in file.items()}
    report = diagnose(file_of(file), target_of(goal))
    assert asked(report) == ["odd-name"] and not report.plan.complete
    assert f'"{ours}" in the name, where the target has "{theirs}"' in report.says
    yes = diagnose(file_of(file), target_of(goal), choose={"odd-name": "as-placed"})
    assert yes.plan.complete and placed(yes)[f"layers.1.{theirs}.2.bias"] == f"{around}layers.1.{ours}.2.bias"


LEAVES = (
    *(("cls_token", "dist_token"), ("attn.rel_pos_h", "attn.rel_pos_w"), ("pi.log_var", "pi.log_std")),
    *(("att.d_weight", "att.weight"), ("w3.weight", "w1.weight"), ("ls2.gamma", "ls1.gamma")),
    *(("alphas", "alphas_cumprod"), ("cos_cached", "sin_cached"), ("codebook", "code_usage")),
)


@pytest.mark.parametrize(("ours", "theirs"), LEAVES)
def test_so_is_that_of_a_number_of_its_own(ours, theirs, file_of, target_of):
    report = diagnose(file_of(block({ours: (8, 8)})), target_of(block({theirs: (8, 8)})))
    assert report.plan is None or not report.plan.complete


SAME = (
    *(
        ("shortcut", "downsample"),
        ("attention", "attn"),
        ("mlp", "feed_forward"),
        ("ffn", "mlp"),
        ("conv_block", "conv"),
    ),
    *(("my_gate", "gate"), ("foregrund", "foreground")),
)


@pytest.mark.parametrize(("ours", "theirs"), SAME)
def test_another_word_for_the_same_is_no_doubt(ours, theirs, file_of, target_of):
    file, goal = (block({name.format(word): shape for name, shape in TWO_LAYERS.items()}) for word in (ours, theirs))
    assert "odd-name" not in asked(diagnose(file_of(file), target_of(goal)))
