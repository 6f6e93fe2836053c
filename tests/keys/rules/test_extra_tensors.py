"""Tensors without a place are left out only when the user says so, or names prove that the target does without them."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose

NET = {"conv.weight": (8, 3, 3, 3), "fc.weight": (2, 8)}


def test_extra_tensors_wait_for_acceptance(file_of, target_of):
    ours = file_of(NET | {"prior.pos_weight": (2,)})
    waiting = diagnose(ours, target_of(NET))
    assert waiting.plan.needs_accept == ("extra-tensors",) and not waiting.plan.complete
    assert "extra-tensors" in waiting.says
    plan = diagnose(ours, target_of(NET), accept=["extra-tensors"]).plan
    assert plan.complete and [s.source for s in plan.steps if s.target is None] == ["prior.pos_weight"]


def test_acceptance_changes_nothing_where_all_have_a_place(file_of, target_of):
    assert diagnose(file_of(NET), target_of(NET), accept=["extra-tensors"]).plan.rules == ()


BLOCKS = {
    f"blocks.{i}.{part}.{leaf}": shape
    for i in range(3)
    for part, leaf, shape in (
        ("conv", "weight", (8, 8, 3, 3)),
        ("conv", "bias", (8,)),
        ("norm", "weight", (8,)),
        ("norm", "bias", (8,)),
    )
} | {"head.weight": (4, 8)}
ATTENTION = {f"blocks.{i}.attn.fc.weight": (8, 8) for i in range(3)}


def test_weights_inside_placed_blocks_are_asked_about_first(file_of, target_of):
    """The same network without attention has every name of the target, and computes something else."""
    ours = file_of(BLOCKS | ATTENTION)
    open_ = diagnose(ours, target_of(BLOCKS), accept=["extra-tensors"])
    assert [a.id for a in open_.plan.ambiguities] == ["inner-parts"] and not open_.plan.complete
    assert "3 weights" in open_.says and "blocks.0.attn.fc.weight" in open_.says
    other = diagnose(ours, target_of(BLOCKS), accept=["extra-tensors"], choose={"inner-parts": "computes"})
    assert other.plan is None or not other.plan.complete
    beside = diagnose(ours, target_of(BLOCKS), accept=["extra-tensors"], choose={"inner-parts": "beside"}).plan
    assert beside.complete and {s.source for s in beside.steps if s.target is None} == set(ATTENTION)


def test_what_is_put_into_blocks_and_comes_off_again_is_no_question(file_of, target_of):
    for added in (
        {f"blocks.{i}.conv.lora_A.default.weight": (2, 8) for i in range(3)},
        {f"blocks.{i}.conv.weight_mask": (8, 8, 3, 3) for i in range(3)},
        {f"blocks.{i}.scale": (8,) for i in range(3)},
        {f"criterion.layers.{i}.fc.weight": (8, 8) for i in range(3)},
        {"blocks.0.attn.fc.weight": (8, 8)},
    ):
        report = diagnose(file_of(BLOCKS | added), target_of(BLOCKS), accept=["extra-tensors"])
        assert report.plan is None or report.plan.ambiguities == (), added


CNN = {"conv1.weight": (8, 3, 3, 3), "bn1.running_mean": (8,), "bn1.weight": (8,), "fc.weight": (2, 8), "fc.bias": (2,)}
OTHERS = {"text.embed.weight": (50, 16), "logit_scale": ()}


def under(prefix, net):
    return {f"{prefix}.{name}": shape for name, shape in net.items()}


def test_a_losss_tensors_and_an_auxiliary_head_are_left_out_unasked(file_of, target_of):
    for beside in ({"criterion.pos_weight": (2,)}, {"AuxLogits.fc.weight": (2, 4)}, {"aux1.fc.weight": (2, 4)}):
        for prefix in ("", "net."):
            ours = {prefix + name: shape for name, shape in CNN.items()} | beside
            report = diagnose(file_of(ours), target_of(CNN))
            assert report.plan.complete and report.says.endswith("Lossless."), report.says
            assert [s.source for s in report.plan.steps if s.target is None] == list(beside)
    # Of a network that is not whole nothing is proved, and what is called aux alone may be an input's branch.
    assert not diagnose(file_of(CNN | {"aux.fc.weight": (2, 4)}), target_of(CNN)).plan.complete
    report = diagnose(file_of({**CNN, "criterion.weight": (2,)}), target_of(CNN | {"fc2.weight": (3, 2)}))
    assert report.plan is None or not report.plan.complete


def test_what_lies_beside_one_whole_module_is_left_out_unasked(file_of, target_of):
    ours = under("visual.trunk", CNN) | OTHERS
    for goal in (CNN, under("trunk", CNN), under("backbone", CNN)):
        report = diagnose(file_of(ours), target_of(goal))
        assert report.plan.complete and report.plan.rules[-1].cost != "lossy", report.says
        assert {s.source for s in report.plan.steps if s.target is None} == set(OTHERS)
        assert {s.source.removeprefix("visual.trunk.") for s in report.plan.steps if s.target} == set(CNN)


def test_what_may_be_of_the_module_or_about_it_is_asked_about(file_of, target_of):
    """Each looks like the file above, and means another thing."""
    whole = under("trunk", CNN)
    for more in (
        {"trunk.attn.fc.weight": (8, 8)},  # inside of it
        {"trunk_lora.fc.A.weight": (2, 8)},  # an adapter
        {"delta.fc.weight": (2, 8)},  # to be added to it
        {"masks.conv1": (8, 3, 3, 3)},  # to be multiplied with it
        {"ema.fc1.weight": (2, 8)},  # an average
        {"shadow.7": (2, 8)},
        {"importance.fc.weight": (2, 8)},  # of its own names and shapes
        {"top.fc.weight": (2, 8)},
        {"scales.fc": (2,)},
    ):
        plan = diagnose(file_of(whole | more), target_of(CNN)).plan
        assert plan is None or not plan.complete, more


def test_one_of_several_in_a_row_is_no_whole_module(file_of, target_of):
    """layer1 alone of a network with layer2 would load; it is a shallower network as well as a part of this one."""
    inner = {"conv1.weight": (8, 8, 3, 3), "conv2.weight": (8, 8, 3, 3), "norm.weight": (8,)}
    other = {"conv1.weight": (16, 8, 3, 3), "conv2.weight": (16, 16, 3, 3), "norm.weight": (16,)}
    for row in ("layer", "stages.", "blocks."):
        ours = under(f"{row}1", inner) | under(f"{row}2", other)
        plan = diagnose(file_of(ours), target_of(inner)).plan
        assert plan is None or not plan.complete
    # A single layer's names are everybody's.
    report = diagnose(
        file_of({"a.weight": (4, 3), "a.bias": (4,), "b.gain": (4,)}), target_of({"weight": (4, 3), "bias": (4,)})
    )
    assert report.plan is None or not report.plan.complete


def test_a_tensor_for_each_module_is_worked_with_wherever_it_lies(file_of, target_of):
    wrapped = {f"module.{name}": shape for name, shape in CNN.items()}
    scales = {"row_scale.conv1": (8,), "row_scale.fc": (2,)}
    plan = diagnose(file_of(wrapped | scales), target_of(CNN)).plan
    assert not plan.complete and plan.needs_accept == ("extra-tensors",)
    # Another module of the file, beside the one that the target is, is not.
    beside = {"projector.0.weight": (4, 2), "projector.0.bias": (4,)}
    assert diagnose(file_of(wrapped | beside), target_of(CNN)).plan.complete


OBSERVERS = {
    f"conv.{at}.{last}": (1,)
    for at in ("activation_post_process", "weight_fake_quant")
    for last in ("scale", "zero_point", "fake_quant_enabled")
} | {"conv.weight_fake_quant.activation_post_process.min_val": ()}


def test_observers_of_quantisation_are_left_out_unasked(file_of, target_of):
    plan = diagnose(file_of(NET | OBSERVERS), target_of(NET)).plan
    assert plan.complete and not plan.needs_accept
    # What an observer scales is no observer's.
    assert diagnose(file_of(NET | {"conv.activation_scale": (8,)}), target_of(NET)).plan.needs_accept == (
        "extra-tensors",
    )


MASKED = {"mask_token": (1, 1, 8), "decoder_embed.weight": (4, 8), "decoder_blocks.0.fc.weight": (4, 4)}


def test_a_masked_autoencoders_decoder_is_left_out_unasked(file_of, target_of):
    plan = diagnose(file_of(NET | MASKED), target_of(NET)).plan
    assert plan.complete and not plan.needs_accept
    for file in (
        {name: shape for name, shape in MASKED.items() if name != "mask_token"},
        MASKED | {"decoder_scale.weight": (8,)},
    ):
        assert diagnose(file_of(NET | file), target_of(NET)).plan.needs_accept == ("extra-tensors",)
