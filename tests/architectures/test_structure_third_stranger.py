"""What twenty further networks were wrongly told, or not told: each beside what must stay unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from inspector import open_checkpoint
from inspector.architectures.recognise import recognise
from inspector.architectures.structure.types import BOTH_DIRECTIONS, Structure, Topic
from inspector.architectures.structure.types import LayerKind as K
from tests.architectures.test_structure_stranger import Named, bare, batch_norm, conv, layer, linear, says, told


def recurrent(path: str, gates: int, inputs: int, hidden: int, ending: str = "") -> Named:
    """ending: behind the name of the hidden weights."""
    width = gates * hidden
    weights = [(f"{path}.weight_ih_l0", (width, inputs)), (f"{path}.weight_hh_l0{ending}", (width, hidden))]
    return [*weights, (f"{path}.bias_ih_l0", (width,)), (f"{path}.bias_hh_l0", (width,))]


def kinds(structure: Structure) -> str:
    return " ".join(says(structure, Topic.KIND))


@pytest.mark.parametrize("ending", ["_raw", "_orig", "_v"])
def test_an_lstm_whose_hidden_weights_have_another_name_is_one(ending: str) -> None:
    found = layer(told([*recurrent("rnn", 4, 12, 20, ending), *linear("out", 7, 20)]), "rnn")
    assert (found.kind, found.inputs, found.outputs) == (K.LSTM, 12, 20)
    assert BOTH_DIRECTIONS not in found.more
    assert layer(told(recurrent("rnn", 4, 12, 20)), "rnn").more == ""


def test_what_a_wrapper_took_out_of_a_recurrent_layer_is_put_back() -> None:
    inner = [one for one in recurrent("rnn.module", 4, 12, 20) if "hh_l0" not in one[0] or "bias" in one[0]]
    found = layer(told([("rnn.weight_hh_l0_raw", (80, 20)), *inner]), "rnn.module")
    assert found.kind is K.LSTM
    # Of another shape it is nobody's.
    assert K.LSTM not in {one.kind for one in told([("rnn.weight_hh_l0_raw", (60, 20)), *inner]).layers}


@pytest.mark.parametrize("width", [64, 129, 321])
def test_a_kernel_over_one_channel_is_one_however_long_it_is(width: int) -> None:
    found = layer(told([*conv("conv1", 100, 1, 6, width), *linear("fc", 9, 100)]), "conv1")
    assert (found.kind, found.kernel) == (K.CONVOLUTION, (6, width))
    front = told([*bare("front", 64, 1, width), *conv("a", 64, 64, 3), *linear("fc", 10, 64)])
    assert layer(front, "front").kind in (K.CONVOLUTION, K.EITHER_CONVOLUTION)
    # A matrix for each of eight is somebody's own.
    assert {one.kind for one in told([("experts.weight", (8, 512, 2048)), *linear("fc", 2, 3)]).layers} == {
        K.TENSOR,
        K.LINEAR,
    }


def test_a_kernel_as_long_as_what_comes_out_sees_all_series() -> None:
    (fed,) = says(told([*conv("conv1", 100, 1, 6, 321), *linear("linear1", 321, 220)]), Topic.FED)
    assert "a kernel of 6 x 321, as long as the 321 that linear1 puts out" in fed
    assert says(told([*conv("conv1", 100, 1, 6, 320), *linear("linear1", 321, 220)]), Topic.FED) == []


def stft(path: str, *shape: int) -> Named:
    return [(f"{path}.weight", shape)]


def test_a_fourier_basis_is_the_input_and_no_picture_comes_in_behind_it() -> None:
    bases = [*stft("stft.conv_real", 513, 1, 1024), *stft("stft.conv_imag", 513, 1, 1024)]
    body = [*bare("conv1", 64, 1, 3, 3), *bare("conv2", 64, 64, 3, 3), *batch_norm("bn1", 64), *linear("fc", 9, 64)]
    structure = told([*bases, ("mel.melW", (513, 64)), *body])
    (takes,) = says(structure, Topic.TAKES)
    assert takes.startswith("stft.conv_real and stft.conv_imag take one channel of sound: Fourier bases")
    assert "513 bins over windows of 1,024" in takes
    assert "as of a spectrogram" in says(structure, Topic.FED)[0]
    assert "the first layer of the file" not in " ".join(says(structure, Topic.FED))
    assert "a bank of 64 filters over 513 bins" in says(structure, Topic.OWN)[0]
    # One filter more than there are bins.
    other = told([*stft("front", 514, 1, 1024), *body])
    assert K.FOURIER not in {one.kind for one in other.layers}


def test_both_parts_in_one_basis_need_its_name() -> None:
    found = layer(told([*stft("stft", 514, 1, 400), *linear("fc", 2, 3)]), "stft")
    assert (found.kind, found.outputs) == (K.FOURIER, 514) and "257 bins over windows of 400" in found.more
    assert layer(told([*stft("istft", 514, 1, 400), *linear("fc", 2, 3)]), "istft").more.startswith("inverse")
    assert layer(told([*stft("front", 514, 1, 400), *linear("fc", 2, 3)]), "front").kind is not K.FOURIER


def test_blocks_of_two_sorts_are_told_by_their_numbers() -> None:
    def block(number: int) -> Named:
        size = 5 if number in (2, 4) else 3
        return [*conv(f"blocks.{number}.a", 16, 16, size, size), *conv(f"blocks.{number}.b", 16, 16)]

    first, second = says(told([t for n in range(6) for t in block(n)]), Topic.REPEATS)
    assert first.startswith("blocks.0, 1, 3 and 5 (of 6 in blocks) are 4 equal blocks")
    assert second.startswith("blocks.2 and 4 (of 6 in blocks) are 2 equal blocks")


def test_kernels_that_come_round_are_told_with_their_period() -> None:
    def block(number: int) -> Named:
        width, kernel = 64 >> (number // 3), (3, 7, 11)[number % 3]
        return [t for c in (1, 2) for m in range(3) for t in conv(f"rb.{number}.convs{c}.{m}", width, width, kernel)]

    (text,) = says(told([*conv("pre", 64, 80, 7), *(t for n in range(6) for t in block(n))]), Topic.REPEATS)
    assert "by turns 3-wide, 7-wide, 11-wide (a kernel for each module, 3 modules in a round, 2 rounds)" in text


def test_no_output_is_said_of_what_may_be_joined_behind_it() -> None:
    edges = [*linear("edges.linear", 16, 66), *bare("edges.out", 128, 416), *linear("mix", 128, 128)]
    structure = told([*edges, *linear("last", 21, 128)])
    assert [claim.path for claim in structure.claims if claim.topic is Topic.ENDS_IN] == ["last"]


def test_a_matrix_with_a_row_for_each_that_comes_out_is_hedged_as_its_count_is() -> None:
    structure = told([*linear("a", 32, 40), *bare("W_s", 21, 32), *linear("b", 32, 32), *linear("out", 21, 32)])
    assert "1 matrix without bias (linear layer or table)" in structure.counts
    assert any(
        "likely a table W_s 21 x 32 (or a matrix without bias 32-21)" in text for text in says(structure, Topic.LAYERS)
    )
    assert any("W_s 21 x 32 has a row for each of the 21" in text for text in says(structure, Topic.FED))
    called = told([*linear("a", 32, 40), *bare("proj", 21, 32), *linear("out", 9, 32)])
    assert called.counts.startswith("2 linear layers, 1 matrix without bias.")


def test_a_matrix_that_is_tied_to_the_last_layer_is_a_table(tmp_path: Path) -> None:
    model = nn.ModuleDict({"encoder": nn.Embedding(90, 8), "rnn": nn.LSTM(8, 8), "decoder": nn.Linear(8, 90)})
    model["decoder"].weight = model["encoder"].weight
    torch.save(model.state_dict(), tmp_path / "tied.pt")
    checkpoint = open_checkpoint(tmp_path / "tied.pt")
    structure = recognise(checkpoint, checkpoint.weights).structure
    assert structure is not None
    assert layer(structure, "encoder").kind is K.EMBEDDING
    assert "A recurrent language model by its shapes: encoder has vectors for 90 tokens" in kinds(structure)


def heads_of(*widths: int) -> Named:
    named = [t for n, width in zip(("hm", "wh", "reg"), widths, strict=True) for t in head(n, width)]
    return [*conv("stem", 32, 3), *conv("body", 32, 32), *named]


def head(name: str, width: int) -> Named:
    return [*conv(f"{name}.0", 16, 32), *conv(f"{name}.2", width, 16, 1, 1)]


def test_heads_beside_each_other_are_all_outputs() -> None:
    (text,) = says(told(heads_of(80, 2, 5)), Topic.ENDS_IN)
    assert "hm.2 80 values at every place; wh.2 2 values at every place; reg.2 5 values at every place" in text
    # What another layer takes is none.
    assert "wh.2" not in says(told([*heads_of(80, 7, 5), *conv("after", 5, 7)]), Topic.ENDS_IN)[0]


def test_an_actor_and_a_critic_by_names_and_widths() -> None:
    body = [*conv("net.0", 32, 1, 8, 8), *linear("net.7", 512, 32)]
    structure = told([*body, *linear("actor", 6, 512), *linear("critic", 1, 512)])
    assert kinds(structure).startswith("An actor and a critic by their names and widths: actor puts out 6, critic one")
    assert not any("as many as the first takes" in text for text in says(structure, Topic.LIKELY_END))
    assert kinds(told([*body, *linear("one", 6, 512), *linear("two", 1, 512)])) == ""


def test_what_is_joined_of_heads_branches_and_coordinates() -> None:
    stage = [*conv("a.x", 19, 128, 1, 1), *conv("a.y", 38, 128, 1, 1)]
    fed = told([*conv("stem", 128, 3), *stage, *conv("b.trunk", 128, 185), *conv("b.x", 19, 128)])
    assert says(fed, Topic.JOINS)[0].startswith("b.trunk takes 185 = 128 + 19 + 38: what a.x, a.y put out")
    sides = [t for n in range(1, 7) for t in conv(f"side{n}", 1, 64)]
    joined = told([*conv("stem", 64, 3), *conv("body", 64, 64), *sides, *conv("out", 1, 6, 1, 1)])
    assert says(joined, Topic.JOINS)[0].startswith("out takes 6: as many as side1, side2")
    assert not any("which nothing in the file puts out" in text for text in says(joined, Topic.FED))
    # Of a long network too, whose other widths nothing puts out.
    long = [t for n in range(60) for t in conv(f"net.s.{n}.c", 16, 70 + n)]
    sides = [t for n in range(1, 7) for t in conv(f"net.side{n}", 1, 64)]
    late = told([*conv("net.stem", 64, 3), *long, *conv("net.mid", 64, 16), *sides, *conv("net.out", 1, 6)])
    assert "net.out takes 6 = 6 x 1: all that net.side1 to net.side6 put out." in says(late, Topic.JOINS)


def test_a_number_for_each_pair_of_vectors() -> None:
    tables = [t for n in range(26) for t in bare(f"emb.{n}", 100 + n, 16)]
    mlp = [*linear("bot.0", 16, 13), *linear("top.0", 64, 367), *linear("top.2", 1, 64)]
    structure = told([*tables, *mlp])
    assert any("367 = 16 + 27 x 26 / 2: a number for each pair" in text for text in says(structure, Topic.JOINS))
    assert "26 tables of vectors of 16" in kinds(structure)
    other = told([*tables, *linear("bot.0", 16, 13), *linear("top.0", 64, 366), *linear("top.2", 1, 64)])
    assert not says(other, Topic.JOINS)


def test_recurrent_layers_of_one_input_are_joined_with_several_steps_of_one() -> None:
    cells = [*recurrent("gru", 3, 100, 100), *recurrent("skip", 3, 100, 5)]
    end = [*linear("linear1", 321, 220), *linear("highway", 1, 24)]
    (text,) = says(told([*conv("conv1", 100, 1, 6, 321), *cells, *end]), Topic.JOINS)
    assert text.startswith("linear1 takes 220 = 100 + 24 x 5: what gru puts out and 24 steps of skip")


def mirrored(*taken: int) -> Named:
    down = [t for n, w in enumerate((8, 16, 32, 64)) for t in double(f"enc.{n}", w, (3, 8, 16, 32)[n])]
    return [*down, *(t for n, w in enumerate((32, 16, 8)) for t in double(f"dec.{n}", w, taken[n]))]


def double(path: str, out: int, inputs: int) -> Named:
    return [*conv(f"{path}.a", out, inputs), *conv(f"{path}.b", out, out)]


def test_stages_that_take_what_earlier_ones_put_out_are_a_u_shape() -> None:
    text = kinds(told(mirrored(96, 48, 24)))
    assert "(a U-shape): enc.0 to enc.3 put out 8-16-32-64, dec.0 to dec.2 32-16-8" in text
    assert "96 = 64 + 32, 48 = 32 + 16, 24 = 16 + 8" in text
    assert kinds(told(mirrored(64, 32, 16))).startswith("An encoder-decoder by its names and widths")
    # One stage of another width: no sum fits all of them.
    assert "U-shape" not in kinds(told(mirrored(96, 47, 24)))


def test_a_decoder_without_its_encoder_tells_what_the_encoder_puts_out() -> None:
    widths = [(32, 64), (32, 64), (16, 32), (16, 32), (8, 16), (8, 24), (4, 8), (1, 4)]
    structure = told([t for n, (out, inputs) in enumerate(widths) for t in conv(f"decoder.{n}.conv", out, inputs)])
    text = kinds(structure)
    assert text.startswith("A decoder without its encoder: it takes 64 channels")
    assert "maps of 32, 16, 16 channels" in text and "its widths then are 16-16-32-64" in text
    plain = told([*conv("decoder.0.conv", 32, 64), *conv("decoder.1.conv", 16, 32), *conv("decoder.2.conv", 1, 16)])
    assert "A decoder" not in kinds(plain)


def test_transposed_convolutions_that_only_narrow_upsample() -> None:
    def up(path: str, inputs: int, out: int) -> Named:
        return [(f"{path}.weight", (inputs, out, 16)), (f"{path}.bias", (out,))]

    stack = [*conv("pre", 64, 80, 7), *up("ups.0", 64, 32), *up("ups.1", 32, 16), *conv("post", 1, 16, 7)]
    assert kinds(told(stack)).startswith("A stack that upsamples: 2 1-d transposed convolutions 64-32-16, from the 80")
    # Beside each other they are three branches of a kind.
    beside = [*conv("pre", 64, 80, 7), *up("x.a", 64, 32), *up("y.a", 64, 32), *conv("post", 1, 32, 7)]
    assert kinds(told(beside)) == ""


def test_what_is_nowhere_in_the_file_is_told() -> None:
    body = [t for n in range(4) for t in conv(f"c{n}.x", 8, 8)]
    assert "no normalisation with weights" in says(told(body), Topic.ABSENT)[0]
    assert "normalisation" not in " ".join(says(told([*body, *batch_norm("bn", 8)]), Topic.ABSENT))
    own: Named = [*body, ("norm.beta", (1, 8, 1, 1)), ("norm.running_std", (8,))]
    assert "normalisation" not in " ".join(says(told(own), Topic.ABSENT))
    one_way = says(told([*recurrent("rnn", 4, 4, 8), *linear("fc", 2, 8)]), Topic.ABSENT)
    assert "runs one way" in one_way[0]


def test_a_deep_norm_at_the_end_of_a_sequential_tells_the_direction() -> None:
    up = [*bare("de.0.0", 64, 128, 1, 1), *batch_norm("de.0.1", 128), *conv("head", 3, 128, 1, 1)]
    found = layer(told([*conv("stem", 64, 3), *up]), "de.0.0")
    assert (found.kind, found.inputs, found.outputs) == (K.TRANSPOSED, 64, 128)
    # The norm may be the next one's where another layer follows in the same Sequential.
    open_ = [*bare("de.0", 64, 128, 1, 1), *batch_norm("de.1", 128), *conv("de.2", 3, 128, 1, 1)]
    assert layer(told([*conv("stem", 32, 3), *open_]), "de.0").kind is K.EITHER_CONVOLUTION


def test_an_embedding_behind_a_norm_is_no_classifier_and_near_ones_have_no_twin(tmp_path: Path) -> None:
    from torchvision import models

    model = models.resnet18(num_classes=10)
    state = model.state_dict()
    state["conv1.weight"] = torch.zeros(64, 3, 3, 3)
    state["fc.weight"] = torch.zeros(10, 25088)
    for name in ("weight", "bias", "running_mean", "running_var"):
        state[f"features.{name}"] = torch.zeros(10)
    torch.save(state, tmp_path / "near.pth")
    checkpoint = open_checkpoint(tmp_path / "near.pth")
    found = recognise(checkpoint, checkpoint.weights)
    assert found.says.startswith("This is near torchvision's resnet18 (")
    assert "cannot tell it from" not in found.says
    assert not [finding for finding in found.findings if finding.id == "architecture-twins"]
    assert found.structure is not None
    (body,) = says(found.structure, Topic.NEAREST)
    assert body.startswith("A body like resnet18's: 2-2-2-2 blocks of two 3x3 convolutions, 64-128-256-512 wide")
    assert "3x3 convolution at the beginning instead of one of 7x7" in body
    assert any("as of an embedding, not of classes" in text for text in says(found.structure, Topic.LIKELY_END))


def test_a_mean_and_a_spread_are_a_code_or_a_distribution() -> None:
    both = [*linear("fc_mu", 8, 32), *linear("fc_var", 8, 32)]
    code = told([*linear("enc", 32, 50), *both, *linear("dec", 32, 8), *linear("out", 50, 32)])
    assert "dec takes as many: numbers drawn from them, as in a variational autoencoder" in kinds(code)
    policy = told([*linear("enc", 32, 50), *both])
    assert "nothing takes as many: a distribution comes out" in kinds(policy)
    assert "spread" not in kinds(told([*linear("enc", 32, 50), *linear("a", 8, 32), *linear("b", 8, 32)]))


def test_open_says_blocks_and_all_outputs() -> None:
    blocks = [t for n in range(3) for t in double(f"body.{n}", 16, 16)]
    structure = told(
        [*conv("stem", 16, 3), *blocks, *head("hm", 4)[:0], *linear("actor", 5, 16), *linear("critic", 1, 16)]
    )
    assert "Blocks: body.0 to body.2 (3, 16 wide)." in structure.short
    assert "actor 5 values; critic 1 value" in structure.short


def test_counts_hedge_squares_as_rows_do() -> None:
    squares = [t for n in range(5) for t in conv(f"body.{n}", 64, 64)]
    named = told([*conv("stem", 64, 3), *squares, *bare("deconv", 64, 32, 4, 4)])
    assert named.counts == "6 convolutions, 1 transposed convolution."
    open_ = told([*conv("stem", 64, 3), *squares, *bare("up", 64, 32, 4, 4), ("up.bias", (32,))])
    assert open_.counts == "1 convolution, 1 transposed convolution, 5 convolutions of either way."
    assert any("either way" in text for text in says(open_, Topic.LAYERS))


@pytest.mark.parametrize("attended", [True, False])
def test_attention_between_convolutions_and_cells_is_named(attended: bool) -> None:
    attention = [*bare("mix.in_proj_weight", 72, 24), *linear("mix.out_proj", 24, 24)] if attended else []
    attention = [(name.removesuffix(".weight") if "in_proj" in name else name, shape) for name, shape in attention]
    told_of = kinds(told([*conv("stem", 24, 3, 5), *attention, *recurrent("gru", 3, 24, 32), *linear("out", 7, 32)]))
    sort = "convolutional, attention-based and recurrent" if attended else "convolutional and recurrent"
    assert f"A {sort} network: 1 convolution, then 1 GRU; the last layer, out, puts out 7." in told_of
