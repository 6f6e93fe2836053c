"""Names of two parts that stand beside each other: asked about, though words and shapes would let one be the other."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

LINEAR = {"weight": (8, 8), "bias": (8,)}
CONV = {"weight": (8, 8, 3, 3), "bias": (8,)}
NORM = {"weight": (8,), "bias": (8,)}
MLP = {f"{n}.{own}": shape for n in (0, 2) for own, shape in LINEAR.items()}
FCS = {f"fc{n}.{own}": shape for n in (1, 2) for own, shape in LINEAR.items()}
ATTN = {f"layers.{n}.attn.{end}.weight": (8, 8) for n in (0, 1) for end in "qkvo"}


def network(part, inside, *, beside=1):
    around = {f"inp{n}.weight": (8, 7) for n in range(beside)}
    return around | {f"{part}.{name}": shape for name, shape in inside.items()}


def asks(before, after, inside, file_of, target_of, beside):
    report = diagnose(file_of(network(before, inside, beside=beside)), target_of(network(after, inside, beside=beside)))
    assert report.plan.ambiguities or report.plan.needs_accept or report.plan.complete
    return bool(report.plan.ambiguities or report.plan.needs_accept)


@pytest.mark.parametrize("beside", [1, 5])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("backbone", "head"),
        ("neck", "backbone"),
        ("stem", "head"),
        ("embedding", "output"),
        ("encoder_attn", "self_attn"),
        ("conv", "attn"),
        ("rel", "root"),
        ("intermediate", "output"),
    ],
)
@pytest.mark.parametrize("inside", [ATTN, MLP], ids=["attention", "mlp"])
def test_most_of_a_network_under_the_name_of_another_part_is_asked_about(
    before, after, inside, beside, file_of, target_of
):
    assert asks(before, after, inside, file_of, target_of, beside)
    assert asks(after, before, inside, file_of, target_of, beside)


@pytest.mark.parametrize("beside", [3, 4, 5])
@pytest.mark.parametrize(("before", "after"), [("embedding", "output"), ("intermediate", "output")])
def test_a_wrapper_around_all_of_it_hides_nothing(before, after, beside, file_of, target_of):
    ours = {f"module.{name}": shape for name, shape in network(before, ATTN, beside=beside).items()}
    assert diagnose(file_of(ours), target_of(network(after, ATTN, beside=beside))).plan.ambiguities


@pytest.mark.parametrize("beside", [1, 5])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("backbone", "features"),
        ("encoder", "backbone"),
        ("net", "model"),
        ("transformer", "bert"),
        ("layers", "blocks"),
        ("cnn", "features"),
        ("main", "net"),
    ],
)
def test_another_word_for_the_whole_network_is_no_doubt(before, after, beside, file_of, target_of):
    assert not asks(before, after, ATTN, file_of, target_of, beside)


@pytest.mark.parametrize("beside", [1, 5])
@pytest.mark.parametrize(
    ("before", "after", "inside"),
    [
        ("self", "neigh", LINEAR),
        ("self", "neigh", MLP),
        ("lin_self", "lin_neigh", LINEAR),
        ("lin_self", "lin_neigh", FCS),
        ("experts.0", "shared_expert", FCS),
        ("dense_ffn", "expert_ffn", LINEAR),
        ("dense_ffn", "expert_ffn", FCS),
        ("conv3x3", "conv1x1", CONV),
        ("ln_f", "ln_0", NORM),
        ("ln_f", "ln_0", LINEAR),
        ("lm_head", "classifier", LINEAR),
        ("lm_head", "classifier", FCS),
        ("projection_head", "classifier", MLP),
        ("shortcut", "main", MLP),
        ("main", "shortcut", {"conv1.weight": (8, 8, 3, 3), "conv2.weight": (8, 8, 3, 3)}),
        ("dense_h_to_4h", "dense_4h_to_h", NORM),
        ("dense_h_to_4h", "dense_4h_to_h", LINEAR),
    ],
)
def test_one_of_two_of_a_kind_is_asked_about_as_the_other(before, after, inside, beside, file_of, target_of):
    assert asks(before, after, inside, file_of, target_of, beside)
    assert asks(after, before, inside, file_of, target_of, beside)


@pytest.mark.parametrize("beside", [1, 5])
@pytest.mark.parametrize(
    ("before", "after", "inside"),
    [
        ("lm_head", "head", LINEAR),
        ("classifier", "head", MLP),
        ("lm_head", "output", LINEAR),
        ("classifier", "fc", LINEAR),
        ("ln_f", "norm", NORM),
        ("final_layer_norm", "ln_f", NORM),
        ("self_attn", "attn", FCS),
        ("mlp", "ffn", FCS),
        ("dense_h_to_4h", "fc1", LINEAR),
        ("skip", "shortcut", CONV),
    ],
)
def test_two_words_for_one_layer_are_no_doubt(before, after, inside, beside, file_of, target_of):
    assert not asks(before, after, inside, file_of, target_of, beside)


@pytest.mark.parametrize("beside", [1, 5])
@pytest.mark.parametrize(
    ("before", "after", "inside"),
    [
        ("stem_", "stem_bgr", CONV),
        ("stem", "stem.bgr", CONV),
        ("fc", "fc_transposed", LINEAR),
        ("conv", "conv_flipped", CONV),
        ("layers", "layers_reversed", MLP),
        ("layers", "layers_reversed", ATTN),
        ("fc", "reversed_fc", LINEAR),
        ("conv", "mirrored_conv", CONV),
        ("proj", "inverse_proj", LINEAR),
        ("kernel_net", "shuffled_kernel_net", LINEAR),
        ("net", "init_net", MLP),
        ("net", "init_net", ATTN),
        ("fc", "random_fc", LINEAR),
        ("fc", "fc_untrained", LINEAR),
    ],
)
def test_a_word_of_the_targets_for_other_numbers_is_asked_about(before, after, inside, beside, file_of, target_of):
    assert asks(before, after, inside, file_of, target_of, beside)


@pytest.mark.parametrize(
    ("before", "after", "inside"),
    [
        ("net", "target_net", MLP),
        ("net", "ema_net", ATTN),
        ("encoder", "encoder_momentum", ATTN),
        ("conv_in", "init_conv", CONV),
        ("encoder", "image_encoder", FCS),
        ("flipped_conv", "conv_flipped", CONV),
    ],
)
def test_a_word_that_networks_of_its_kind_have_is_no_doubt(before, after, inside, file_of, target_of):
    assert not asks(before, after, inside, file_of, target_of, 1)


@pytest.mark.parametrize("around", ["", "module.", "model."])
def test_most_of_a_network_under_another_parts_name_is_asked_about(around, file_of, target_of):
    """What stands around everything hid it: module.embedding.layers.0.attn was read as output.layers.0.attn."""
    attn = {
        f"layers.{i}.attn.{p}.{n}": s for i in (0, 1) for p in "qkvo" for n, s in (("weight", (6, 6)), ("bias", (6,)))
    }
    rest = {"embed.weight": (30, 6), "trunk.0.weight": (6, 6), "trunk.2.weight": (6, 6), "out_head.weight": (4, 6)}
    rest |= {"trunk.0.bias": (6,), "trunk.2.bias": (6,), "out_head.bias": (4,)}
    ours = {f"{around}{n}": s for n, s in (rest | {f"embedding.{n}": s for n, s in attn.items()}).items()}
    report = diagnose(file_of(ours), target_of(rest | {f"output.{n}": s for n, s in attn.items()}))
    assert report.plan is None or not report.plan.complete


def test_halves_in_another_order_are_another_matrix(file_of, target_of):
    second = {"mlp.0.w2.weight": (8, 10)}
    file, target = file_of({"mlp.0.w3w1.weight": (20, 8)} | second), target_of({"mlp.0.w1w3.weight": (20, 8)} | second)
    assert not diagnose(file, target).plan.complete
