"""What twenty-four further networks were wrongly told, or not told: each beside what must stay unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torchvision import models

from inspector import open_checkpoint
from inspector.architectures.recognise import recognise
from inspector.architectures.structure.types import LayerKind as K
from inspector.architectures.structure.types import Topic
from inspector.architectures.structure.wording import notation
from inspector.architectures.types import Recognition
from tests.architectures.test_structure_stranger import bare, batch_norm, conv, layer, linear, says, told

Named = list[tuple[str, tuple[int, ...]]]


def noisy(path: str, out: int, inputs: int, *parts: str) -> Named:
    shapes = {"weight": (out, inputs), "bias": (out,)}
    return [(f"{path}.{what}_{part}", shape) for what, shape in shapes.items() for part in parts]


def test_a_mean_and_a_spread_for_each_weight_are_one_noisy_layer() -> None:
    structure = told([*conv("convs.0", 8, 4), *noisy("fc", 6, 72, "mu", "sigma", "epsilon")])
    found = layer(structure, "fc")
    assert (found.kind, found.inputs, found.outputs, found.more) == (K.LINEAR, 72, 6, "noisy")
    assert [one.path for one in structure.layers] == ["convs.0", "fc"]
    assert says(structure, Topic.ENDS_IN) == ["fc puts out 6 values, and no other layer takes so many."]
    bayes = layer(told(noisy("fc", 6, 72, "mu", "rho")), "fc")
    assert (bayes.kind, bayes.more) == (K.LINEAR, "each weight a mean and a spread")


def test_a_mean_without_a_spread_of_its_shape_is_no_layer() -> None:
    structure = told([("fc.weight_mu", (6, 72)), ("fc.weight_sigma", (6,))])
    assert {one.kind for one in structure.layers} == {K.TENSOR}


def test_no_layer_is_the_last_where_matrices_of_other_modules_follow() -> None:
    chain = [*conv("convs.0", 8, 4), *conv("convs.1", 8, 8)]
    behind = told([*chain, ("head.table", (8, 3))])
    assert not [claim for claim in behind.claims if "last layer" in claim.says + claim.evidence]
    # A bias of its own keeps a row in other clothes.
    for named in (chain, [*chain, ("convs.shift", (1, 8, 1, 1))]):
        assert any("the last layer in the file" in text for text in says(told(named), Topic.LIKELY_END))


def test_a_recurrent_layer_behind_leaves_no_last_linear_layer() -> None:
    def last(named: Named) -> str:
        (claim,) = [claim for claim in told(named).claims if claim.topic is Topic.ENDS_IN]
        return claim.evidence

    lstm: Named = [("rnn.weight_ih_l0", (1024, 35)), ("rnn.weight_hh_l0", (1024, 256))]
    assert "last layer" not in last([*linear("gmm", 327, 256), *lstm])
    assert last([*lstm, *linear("gmm", 327, 256)]).endswith("the last layer of the file")


def test_a_filter_of_one_channel_behind_what_a_gate_halves_is_depthwise() -> None:
    named = [*linear("inp", 256, 80), *bare("in_proj", 1024, 256), *conv("conv1d", 512, 1, 4), *bare("out", 256, 512)]
    assert layer(told(named), "conv1d").kind is K.DEPTHWISE
    # Three times as many: no gate, and no filter for each.
    thirds = [*linear("inp", 256, 80), *bare("in_proj", 1536, 256), *conv("conv1d", 512, 1, 4)]
    found = layer(told(thirds), "conv1d")
    assert (found.kind, found.more) == (K.CONVOLUTION, "unless depthwise")


def test_a_shortcut_on_an_input_of_one_channel_is_not_called_depthwise() -> None:
    unit = [*conv("m.0.unit0", 16, 1), *conv("m.0.unit1", 16, 16)]
    found = layer(told([*unit, *conv("m.0.residual", 16, 1)]), "m.0.residual")
    assert (found.kind, found.more) == (K.CONVOLUTION, "unless depthwise")
    # Its name says it, or the network takes other than one channel.
    assert layer(told([*unit, *conv("m.0.depthwise", 16, 1)]), "m.0.depthwise").kind is K.DEPTHWISE
    colour = [*conv("m.0.unit0", 16, 3), *conv("m.0.unit1", 16, 16), *conv("m.0.residual", 16, 1)]
    assert layer(told(colour), "m.0.residual").kind is K.DEPTHWISE


def test_twice_as_many_filters_as_channels_may_be_in_groups() -> None:
    named = [*bare("temporal", 8, 1, 1, 64), *batch_norm("bn1", 8), *bare("spatial", 16, 1, 22, 1)]
    assert layer(told([*named, *batch_norm("bn2", 16)]), "spatial").more == "unless in 8 groups"
    # Six channels cannot be shared out among sixteen filters.
    assert layer(told([*conv("a", 6, 3), *conv("b", 16, 1)]), "b").more == ""


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("deconv5.0", (1024, 512, 4, 4)),
        ("upsampled_flow6_to_5", (2, 2, 4, 4)),
        ("upconv1", (64, 32, 4, 4)),
        ("up.ext_tconv1", (16, 16, 2, 2)),
        ("transposed_conv", (16, 12, 3, 3)),
        ("ups.0.conv_transpose", (16, 12, 3, 3)),
    ],
)
def test_what_is_called_transposed_takes_its_first_size(path: str, shape: tuple[int, ...]) -> None:
    found = layer(told([*conv("first", 8, 3), *bare(path, *shape)]), path)
    assert (found.kind, found.inputs, found.outputs) == (K.TRANSPOSED, *shape[:2])


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("upconv1", (64, 32, 3, 3)),  # behind an interpolation, as ESRGAN's
        ("up_sample.conv", (32, 32, 2, 2)),
        ("conv5", (64, 32, 4, 4)),
        ("transformer", (64, 32, 3, 3)),
    ],
)
def test_what_a_name_leaves_open_stays_so(path: str, shape: tuple[int, ...]) -> None:
    assert layer(told([*conv("first", 8, 3), *bare(path, *shape)]), path).kind is K.EITHER_CONVOLUTION


def test_a_deconvolution_that_takes_what_stands_before_it_runs_forwards() -> None:
    named = [*conv("deconv.0", 32, 3), *bare("deconv.1", 64, 32, 4, 4)]
    assert layer(told(named), "deconv.1").kind is not K.TRANSPOSED


def test_a_very_wide_kernel_is_one_where_its_module_upsamples() -> None:
    wide: Named = [("upsample.weight", (80, 80, 1024)), ("upsample.bias", (80,))]
    found = layer(told([*wide, *conv("start", 8, 4, 1)]), "upsample")
    assert (found.kind, found.kernel) == (K.TRANSPOSED, (1024,))
    plain: Named = [("own.weight", (80, 80, 1024)), ("own.bias", (80,))]
    assert K.TRANSPOSED not in {one.kind for one in told([*plain, *conv("start", 8, 4, 1)]).layers}


def test_where_names_tell_the_transposed_ones_square_ones_are_not_open() -> None:
    body = [*conv("a", 8, 3), *conv("b", 8, 8)]
    assert layer(told([*body, *bare("deconv", 8, 4, 4, 4)]), "b").more == ""
    assert layer(told([*body, *bare("up", 8, 4, 4, 4), ("up.bias", (4,))]), "b").more == "either way"


def test_what_is_only_near_a_known_network_is_described_as_well(tmp_path: Path) -> None:
    state = models.resnet18(num_classes=10).state_dict()
    torch.save({name.replace("layer4.", "stage4."): value for name, value in state.items()}, tmp_path / "near.pth")
    torch.save(state, tmp_path / "exact.pth")

    def recognised(name: str) -> Recognition:
        checkpoint = open_checkpoint(tmp_path / name)
        assert checkpoint.weights is not None
        return recognise(checkpoint, checkpoint.weights)

    near = recognised("near.pth")
    assert near.candidates
    assert near.structure is not None
    assert any("stage4" in claim.says for claim in near.structure.claims)
    assert recognised("exact.pth").structure is None


def test_shifts_and_scales_for_other_layers_are_no_outputs() -> None:
    body = [*linear("inp", 24, 10), *linear("final_layer.linear", 8, 24)]
    ends = told([*body, *linear("final_layer.adaLN_modulation.1", 48, 24)])
    text = [claim.says for claim in ends.claims if claim.topic in (Topic.ENDS_IN, Topic.LIKELY_END)]
    assert text == ["final_layer.linear puts out 8 values: by its name likely an output."]
    assert says(told(body), Topic.ENDS_IN) == [
        "final_layer.linear puts out 8 values, and no other layer takes so many."
    ]


def bottleneck(path: str, width: int) -> Named:
    return [*conv(f"{path}.reduce", width // 4, width, 1, 1), *conv(f"{path}.expand", width, width // 4)]


def test_equal_blocks_of_other_names_between_others_are_told_once() -> None:
    apart = [*conv("stem", 64, 3), *bottleneck("regular2_1", 64), *bottleneck("dilated2_2", 64), *conv("mid", 64, 64)]
    structure = told([*apart, *bottleneck("regular2_5", 64)])
    text = [says_ for says_ in says(structure, Topic.REPEATS) if "alike" in says_]
    assert text == ["regular2_1, dilated2_2 and regular2_5 are built alike, all shapes equal."]
    assert sum("reduce" in line or "64-16" in line for line in says(structure, Topic.LAYERS)) == 1
    # Of another width: two builds.
    other = told([*apart, *bottleneck("regular2_5", 32)])
    assert any(text.startswith("regular2_5: ") for text in says(other, Topic.LAYERS))


def test_heads_that_put_out_as_many_as_the_last_are_named_with_it() -> None:
    named = [*linear("linear1", 256, 23), *linear("linear2", 1, 256), *linear("linear3", 256, 23)]
    twice = told([*named, *linear("linear4", 1, 256)])
    assert says(twice, Topic.ENDS_IN) == [
        "2 layers put out widths that no other layer takes alone: linear2, linear4 1 value each."
    ]
    assert any(
        "2 equal chains of linear layers 23-256-1 (linear1 to linear2, linear3 to linear4)" in text
        for text in says(twice, Topic.LAYERS)
    )
    other = told([*named, *linear("linear4", 6, 256)])
    assert says(other, Topic.ENDS_IN)[-1].endswith("takes alone: linear2 1 value; linear4 6 values.")
    assert not any("equal chains" in text for text in says(other, Topic.LAYERS))


def test_columns_of_unequal_blocks_are_folded_where_they_repeat() -> None:
    def block(number: int, start: int) -> Named:
        inner = [one for n in range(8) for one in conv(f"WN.{number}.in_layers.{n}", 64, 32, 3)]
        return [*inner, *conv(f"WN.{number}.start", 32, start, 1)]

    (text,) = says(told([*block(0, 4), *block(1, 2)]), Topic.REPEATS)
    assert "8 times 3-wide 1-d convolution 32-64, 1-wide 1-d convolution 4-32 / 2-32" in text
    assert "more layers" not in text


def test_mixing_matrices_beside_each_other_are_counted_and_make_no_chain() -> None:
    def mixers(*widths: int) -> str:
        named = [one for n, width in enumerate(widths) for one in bare(f"inv.{n}.conv", width, width, 1)]
        return next(text for text in says(told([*conv("a", 5, 3), *named]), Topic.LAYERS) if text.startswith("inv"))

    assert mixers(8, 8, 8, 8, 6, 6, 6, 6, 4).startswith("inv: 1-wide 1-d convolutions 4 of 8-8, 4 of 6-6, 4-4")


def cell(path: str, gates: int, inputs: int, hidden: int) -> Named:
    return [(f"{path}.weight_ih", (gates * hidden, inputs)), (f"{path}.weight_hh", (gates * hidden, hidden))]


def test_what_a_decoder_joins_is_the_sum_of_widths_put_out_before() -> None:
    named = [
        *linear("net.query", 1024, 80),
        *linear("net.memory", 512, 1024),
        *linear("net.attn", 512, 1536),
        *bare("net.embedding", 5893, 256),
        *cell("net.rnn", 3, 1280, 512),
        *linear("net.fc_out", 5893, 1792),
    ]
    text = [one for one in says(told(named), Topic.JOINS) if "likely joined" in one]
    assert text == [
        "net.attn takes 1,536 = 1,024 + 512: widths that layers before it put out, likely joined.",
        "net.rnn takes 1,280 = 1,024 + 256: widths that layers before it put out, likely joined.",
        "net.fc_out takes 1,792 = 1,024 + 512 + 256: widths that layers before it put out, likely joined.",
    ]
    assert not [one for one in says(told(named, ordered=False), Topic.JOINS) if "likely joined" in one]


def test_a_sum_that_leaves_out_the_layer_before_is_none() -> None:
    named = [*linear("a", 1024, 80), *linear("b", 512, 1024), *linear("c", 100, 512), *linear("d", 40, 1536)]
    assert not [one for one in says(told(named), Topic.JOINS) if "likely joined" in one]
    # What an earlier layer takes as well comes from outside.
    twice = [*linear("in", 64, 192), *linear("b", 128, 64), *linear("d", 40, 192)]
    assert not [one for one in says(told(twice), Topic.JOINS) if "likely joined" in one]


def graph_attention(path: str, rows: int, columns: int, scores: int) -> Named:
    return [(f"{path}.W", (rows, columns)), (f"{path}.a", (scores, 1))]


def test_heads_of_graph_attention_by_their_own_matrices() -> None:
    heads = [one for n in range(4) for one in graph_attention(f"attention_{n}", 50, 8, 16)]
    structure = told([*heads, *graph_attention("out_att", 32, 7, 14)])
    first, last = says(structure, Topic.OWN)
    assert "attention_0 to attention_3 each take 50 values and put out 8 by a matrix W; a has 2 x 8" in first
    assert "likely 4 heads" in first
    assert "out_att takes 32 values and puts out 7" in last
    assert "32 = 4 x 8, as many as attention_0 to attention_3 put out side by side" in last
    assert any("out_att.W 32x7, out_att.a 14x1" in one for one in says(structure, Topic.LAYERS))
    other = [one for n in range(4) for one in graph_attention(f"attention_{n}", 50, 8, 15)]
    assert not says(told([*other, *graph_attention("out_att", 33, 7, 15)]), Topic.OWN)


def test_a_long_list_is_folded_where_pairs_repeat() -> None:
    def darknet(*numbers: int) -> str:
        named: Named = []
        width = 3
        number = 0
        for stage in numbers:
            named += conv(f"module_list.{number}.conv", 2 * stage, width)
            width, number = 2 * stage, number + 1
            for _ in range(4):
                named += conv(f"module_list.{number}.conv", stage, width, 1, 1)
                named += conv(f"module_list.{number + 1}.conv", width, stage)
                number += 3
        (text,) = says(told(named), Topic.LAYERS)
        return text

    text = darknet(16, 32)
    assert "4 times (1x1 convolution 32-16, 3x3 convolution 16-32, a number left out), 3x3 convolution 32-64" in text
    assert "4 times (1x1 convolution 64-32, 3x3 convolution 32-64, a number left out)" in text
    assert "something without weights stands" in text and "more ..." not in text
    # The numbers between are norms': nothing is left out.
    pair = [(8, 4), (16, 8), (4, 16)]
    normed = [
        one
        for n in range(12)
        for one in [
            *conv(f"list.{2 * n}", *pair[n % 3], 1, 1 + n % 3),
            *batch_norm(f"list.{2 * n + 1}", pair[n % 3][0]),
        ]
    ]
    (whole,) = says(told(normed), Topic.LAYERS)
    assert "4 times (1x1 convolution 4-8, 1x2 convolution 8-16, 1x3 convolution 16-4)" in whole
    assert "left out" not in whole
    # Kernels that differ everywhere repeat nothing.
    other = [one for n in range(12) for one in conv(f"list.{n}.conv", 9 + n, 8 + n, 1, 1 + n)]
    (plain,) = says(told(other), Topic.LAYERS)
    assert "4 more" in plain and "times" not in plain


def test_a_number_alone_is_a_prelu_where_names_call_others_so() -> None:
    prelu: Named = [("block.out_prelu.weight", (1,))]
    some: Named = [*conv("block.0", 8, 3), ("block.2.weight", (1,))]
    assert layer(told([*some, *prelu]), "block.2").kind is K.PRELU
    assert layer(told(some), "block.2").kind is K.SLOPE
    assert layer(told([*conv("u", 8, 3), ("u.adn.A.weight", (1,))]), "u.adn.A").kind is K.PRELU


def test_norms_that_are_called_layer_norms_are_so_counted() -> None:
    def norm(path: str) -> Named:
        return [(f"{path}.weight", (8,)), (f"{path}.bias", (8,))]

    called = told([*linear("fc", 8, 4), *norm("layer_norm"), *norm("blocks.0.ln_1")])
    assert called.counts == "1 linear layer, 2 layer norms."
    assert not any("group or instance" in text for text in called.open)
    other = told([*linear("fc", 8, 4), *norm("layer_norm"), *norm("norm")])
    assert "2 layer, group or instance norms" in other.counts
    assert any("group or instance" in text for text in other.open)


def test_the_legend_of_linear_layers_names_no_convolution() -> None:
    def legend(named: Named) -> str:
        return notation(told(named).claims)

    assert legend([*linear("a", 64, 3), *linear("b", 128, 64)]).startswith('"linear layers 3-64-128"')
    assert legend([*conv("a", 64, 3), *conv("b", 128, 64)]).startswith('"3x3 convolutions 3-64-128"')


def test_the_first_layer_of_open_direction_is_named_with_both_readings() -> None:
    first = says(told([*bare("initial", 13, 3, 3, 3), *conv("a", 8, 16)]), Topic.FED)
    assert first == [
        "initial, the first layer of the file, takes three channels, unless it is transposed and puts them out."
    ]
    assert says(told([*conv("initial", 13, 3), *conv("a", 8, 16)]), Topic.FED) == []


def test_a_kernel_as_wide_as_there_are_channels_may_be_depthwise_where_no_table_is() -> None:
    body = [*conv("a", 8, 2), *conv("b", 16, 8), *batch_norm("n", 16), *conv("separable", 16, 1, 1, 16)]
    assert layer(told(body), "separable").kind is K.DEPTHWISE
    words = [*bare("word_embeddings", 900, 16), *conv("convs", 16, 1, 3, 16)]
    assert layer(told(words), "convs").kind is K.CONVOLUTION


def test_numbers_between_layers_that_no_name_has_are_told() -> None:
    (text,) = says(told([*linear("bot.0", 8, 4), *linear("bot.2", 8, 8), *linear("bot.4", 1, 8)]), Topic.LEFT_OUT)
    assert text.startswith("Numbers of no layer between others: bot 1, 3. Likely ")
    assert says(told([*linear("bot.0", 8, 4), *batch_norm("bot.1", 8), *linear("bot.2", 8, 8)]), Topic.LEFT_OUT) == []
