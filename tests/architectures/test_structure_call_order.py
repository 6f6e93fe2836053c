"""Networks whose modules are made in another order than they are called in, or sorted: each beside its quiet twin."""

from __future__ import annotations

import itertools

import pytest

from inspector.architectures.structure.types import LayerKind as K
from inspector.architectures.structure.types import Structure, Topic
from tests.architectures.test_structure_stranger import Named, bare, conv, layer, linear, says, told


def lstm(path: str, inputs: int, hidden: int) -> Named:
    weights = [(f"{path}.weight_ih_l0", (4 * hidden, inputs)), (f"{path}.weight_hh_l0", (4 * hidden, hidden))]
    return [*weights, (f"{path}.bias_ih_l0", (4 * hidden,)), (f"{path}.bias_hh_l0", (4 * hidden,))]


def up(path: str, inputs: int, out: int, *kernel: int) -> Named:
    return [*bare(path, inputs, out, *kernel), (f"{path}.bias", (out,))]


def ends(structure: Structure) -> list[str]:
    return [*says(structure, Topic.ENDS_IN), *says(structure, Topic.LIKELY_END)]


ENCODER = [*conv("net.encoder.0", 24, 2, 8), *conv("net.encoder.1", 40, 24, 8), *conv("net.encoder.2", 72, 40, 8)]
DECODER = [*up("net.decoder.0", 72, 40, 8), *up("net.decoder.1", 40, 24, 8), *up("net.decoder.2", 24, 7, 8)]
BETWEEN = [*lstm("net.rnn.lstm", 72, 36), *linear("net.rnn.linear", 72, 36)]


def test_what_is_made_last_and_called_in_the_middle_is_not_what_comes_out() -> None:
    structure = told([*ENCODER, *DECODER, *BETWEEN])
    assert ends(structure) == ["net.decoder.2 puts out 7 values at every place, and no other layer takes so many."]
    (kind,) = [text for text in says(structure, Topic.KIND) if "recurrent" in text]
    assert "then 1 LSTM" not in kind
    assert "net.rnn.linear, the last in the file, puts out the 72 that a part before it takes" in kind


def test_what_is_made_last_and_feeds_nothing_comes_out() -> None:
    structure = told([*ENCODER, *lstm("net.rnn.lstm", 72, 36), *linear("net.rnn.linear", 11, 36)])
    (end,) = ends(structure)
    assert end.startswith("net.rnn.linear puts out 11 values")
    assert "3 convolutions, then 1 LSTM; the last layer, net.rnn.linear, puts out 11." in says(structure, Topic.KIND)[0]
    # A part that begins with as much and ends in what others take hands on what it took.
    side = [*conv("net.side.0", 40, 72, 1), *conv("net.side.1", 72, 40, 1)]
    assert ends(told([*ENCODER, *side, *BETWEEN]))[0].startswith(
        "net.rnn.linear, the last layer in the file, puts out 72"
    )


def stages(prefix: str, *widths: int) -> Named:
    """Each with two convolutions."""
    pairs = list(itertools.pairwise(widths))
    return [
        tensor
        for n, (a, b) in enumerate(pairs)
        for tensor in [*conv(f"{prefix}.{n}.a", b, a), *conv(f"{prefix}.{n}.b", b, b)]
    ]


def joined(prefix: str, *widths: int) -> Named:
    """Each takes twice what it puts out."""
    return [
        tensor
        for n, width in enumerate(widths)
        for tensor in [*conv(f"{prefix}.{n}.a", width, 2 * width), *conv(f"{prefix}.{n}.b", width, width)]
    ]


def steps(*widths: int) -> Named:
    pairs = itertools.pairwise(widths)
    return [tensor for n, (a, b) in enumerate(pairs) for tensor in bare(f"steps.{n}", a, b, 2, 2)]


LOCAL = joined("local", 64, 32, 16)
CONTEXT = stages("context", 5, 16, 32, 64, 80)


def test_a_decoder_made_first_does_not_take_what_the_network_takes() -> None:
    structure = told([*LOCAL, *CONTEXT, *steps(80, 64, 32, 16)])
    assert says(structure, Topic.TAKES) == ["context.0.a takes 5 channels."]
    (kind,) = says(structure, Topic.KIND)
    assert kind.startswith("An encoder-decoder with joins (a U-shape): context.0 to context.3 put out 16-32-64-80")
    assert "(128 = 64 + 64, 64 = 32 + 32, 32 = 16 + 16)" in kind
    # With one width that fits no sum it is no U.
    other = told([*joined("local", 64, 48, 16), *CONTEXT, *steps(80, 64, 32, 16)])
    assert not any("U-shape" in text for text in says(other, Topic.KIND))


def test_what_the_first_takes_is_the_networks_where_nothing_contradicts() -> None:
    # 256 is no sum of what is put out here.
    structure = told([*conv("first", 64, 256), *CONTEXT])
    assert says(structure, Topic.TAKES) == ["first takes 256 channels."]
    # Five channels of a filter in the middle of a part may be a group's.
    grouped = told([*LOCAL, *conv("body.0", 40, 80), *conv("body.1", 80, 5), *conv("body.2", 80, 80)])
    assert says(grouped, Topic.TAKES) == ["local.0.a takes 128 channels."]


def test_steps_of_a_list_run_the_way_that_their_numbers_and_widths_leave() -> None:
    structure = told([*CONTEXT, *steps(80, 64, 32, 16)])
    assert [(one.kind, one.inputs, one.outputs) for one in structure.layers if one.path.startswith("steps")] == [
        (K.TRANSPOSED, 80, 64),
        (K.TRANSPOSED, 64, 32),
        (K.TRANSPOSED, 32, 16),
    ]
    # Odd kernels, and widths that are no row, leave both ways open.
    odd = [tensor for n, (a, b) in enumerate([(80, 64), (64, 32), (32, 16)]) for tensor in bare(f"s.{n}", a, b, 3, 3)]
    assert {one.kind for one in told([*CONTEXT, *odd]).layers if one.path.startswith("s.")} == {K.EITHER_CONVOLUTION}
    gap = [tensor for n, (a, b) in enumerate([(80, 64), (48, 32), (32, 16)]) for tensor in bare(f"s.{n}", a, b, 2, 2)]
    assert {one.kind for one in told([*CONTEXT, *gap]).layers if one.path.startswith("s.")} == {K.EITHER_CONVOLUTION}


def test_a_list_of_outputs_of_a_single_place_runs_forwards() -> None:
    def heads(name: str, out: int) -> Named:
        return [tensor for n, width in enumerate((16, 32, 64)) for tensor in bare(f"{name}.{n}", out, width, 1, 1, 1)]

    def kinds_of(name: str, out: int) -> set[K]:
        return {one.kind for one in told([*CONTEXT, *heads(name, out)]).layers if one.path.startswith(name)}

    assert kinds_of("seg_outputs", 7) == {K.CONVOLUTION}
    # Called nothing, or of a width that others put out, both ways stay open.
    assert kinds_of("laterals", 7) == kinds_of("seg_outputs", 80) == {K.EITHER_CONVOLUTION}


def hourglass(answers: str, merges: str) -> Named:
    body = [*conv("pre", 32, 3, 7, 7), *conv("body.0", 48, 32), *conv("body.1", 32, 48)]
    made = [*conv(f"{answers}.0", 13, 32, 1, 1), *conv(f"{answers}.1", 13, 32, 1, 1)]
    return [*body, *made, *conv(f"{merges}.0", 32, 13, 1, 1)]


def test_an_answer_that_is_fed_back_is_the_output_and_what_takes_it_is_not() -> None:
    (end,) = ends(told(hourglass("outs", "merge_preds")))
    assert end.startswith("outs.0, outs.1 put out 13 values each at every place: by their names likely outputs.")
    assert "merge_preds.0, the last layer in the file, takes as many" in end
    # What is called no output is a step on the way, and what is called one itself may end the network.
    for answers, merges in (("narrow", "merge_preds"), ("outs", "head")):
        (end,) = ends(told(hourglass(answers, merges)))
        assert end.startswith(f"{merges}.0, the last layer in the file, puts out 32 values")


def test_a_linear_layer_of_widths_that_nothing_else_has_is_along_another_axis() -> None:
    body = [*linear("embed", 16, 5), *linear("mix.0", 40, 16), *linear("mix.1", 16, 40)]
    structure = told([*body, *linear("predict_linear", 148, 74), *linear("projection", 9, 16)])
    (fed,) = [text for text in says(structure, Topic.FED) if "another axis" in text]
    assert fed.startswith("predict_linear takes 74 and puts out 148, and nothing else in the file is as wide as either")
    assert [text.partition(" ")[0] for text in ends(structure)] == ["projection"]
    # What takes the width around it is a head.
    head = told([*body, *linear("predict_linear", 148, 16), *linear("projection", 9, 16)])
    assert not any("another axis" in text for text in says(head, Topic.FED))
    assert any(text.startswith("predict_linear") or " predict_linear " in text for text in ends(head))


def test_sorted_names_leave_what_nothing_puts_out_and_nobody_takes() -> None:
    named = [*conv("a_out", 9, 24, 1, 1), *conv("b_body", 24, 40), *conv("c_in", 40, 7)]
    structure = told(named, ordered=False)
    assert says(structure, Topic.TAKES) == ["c_in takes 7 channels."]
    assert says(structure, Topic.ENDS_IN) == [
        "a_out puts out 9 values at every place, and no other layer takes so many."
    ]
    # 64 = 24 + 40 are joined, and 3 x 9 that nothing puts out may be what a_out does.
    other = told([*named, *conv("d", 40, 64), *conv("e", 40, 27)], ordered=False)
    assert says(other, Topic.ENDS_IN) == []
    assert not any("64" in text for text in [*says(other, Topic.TAKES), *says(other, Topic.FED)])


@pytest.mark.parametrize("name", ["blocks.0.mix", "stage4.list.1", "block.attn.qkv"])
def test_what_stands_inside_a_block_of_a_sorted_file_is_no_output(name: str) -> None:
    named = [*conv(name, 72, 24, 1, 1), *conv("b_body", 24, 40), *conv("c_in", 40, 7)]
    assert says(told(named, ordered=False), Topic.ENDS_IN) == []
    assert says(told([*conv("stage4.head.1", 72, 40, 1, 1), *named[2:]], ordered=False), Topic.ENDS_IN) != []


def test_several_widths_that_come_from_nowhere_are_hedged() -> None:
    structure = told([*linear("a", 32, 63), *linear("b", 32, 59), *linear("c", 4, 32)], ordered=False)
    assert says(structure, Topic.TAKES) == []
    assert [text.partition(",")[0] for text in says(structure, Topic.FED)] == ["a takes 63 values", "b takes 59 values"]


def test_numbers_of_sorted_names_are_in_their_order() -> None:
    widths = {0: (5, 24), 2: (24, 40), 10: (40, 56), 12: (56, 9)}
    named = [tensor for n in sorted(widths, key=str) for tensor in conv(f"net.{n}", widths[n][1], widths[n][0])]
    assert [name.split(".")[1] for name, _ in named[::2]] == ["0", "10", "12", "2"]
    assert "net: 4 3x3 convolutions 5-24-40-56-9." in says(told(named, ordered=False), Topic.LAYERS)
    # A file's own order is kept.
    assert [one.path for one in told(named).layers] == ["net.0", "net.10", "net.12", "net.2"]


@pytest.mark.parametrize(("name", "kind"), [("conv_dw", K.DEPTHWISE), ("depth_conv", K.EITHER_CONVOLUTION)])
def test_a_filter_of_one_channel_in_a_sorted_file_is_depthwise_by_its_name(name: str, kind: K) -> None:
    named = [*bare(name, 16, 1, 1, 7), *conv("point", 16, 24, 1, 1), *conv("z", 24, 16)]
    assert layer(told(named, ordered=False), name).kind is kind
    # Where nothing else puts out so many, its name alone says nothing.
    assert layer(told([*bare(name, 17, 1, 1, 7), *conv("z", 24, 16)], ordered=False), name).kind is K.EITHER_CONVOLUTION
