"""What twenty-one networks that no library knows were wrongly told, or not told: each beside what must stay unsaid."""

from __future__ import annotations

import io

import pytest
import torch
from rich.console import Console

from inspector import open_checkpoint
from inspector.architectures.recognise import recognise
from inspector.architectures.structure.blocks import equal_text
from inspector.architectures.structure.describe import describe_structure
from inspector.architectures.structure.questions import REASONS, Question
from inspector.architectures.structure.types import Layer, Structure, Topic
from inspector.architectures.structure.types import LayerKind as K
from inspector.architectures.structure.wording import layers_text, notation
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import Shape, StateDict, StateRole, TensorInfo
from inspector.render.structure_text import structure_text
from inspector.render.text import assumed_text

Named = list[tuple[str, Shape]]


def told(named: Named, *, ordered: bool = True) -> Structure:
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=s, dtype="float32", nbytes=0, storage_id=None) for n, s in named
    )
    tree = module_tree(tensors)
    return describe_structure(
        StateDict(path=(), role=StateRole.WEIGHTS, why="", kind="", tensors=tensors, modules=tree, ordered=ordered)
    )


def says(structure: Structure, topic: Topic) -> list[str]:
    return [claim.says for claim in structure.claims if claim.topic is topic]


def layer(structure: Structure, path: str) -> Layer:
    (found,) = [one for one in structure.layers if one.path == path]
    return found


def bare(path: str, *shape: int) -> Named:
    return [(f"{path}.weight", shape)]


def conv(path: str, out: int, inputs: int, *kernel: int) -> Named:
    return [*bare(path, out, inputs, *(kernel or (3, 3))), (f"{path}.bias", (out,))]


def linear(path: str, out: int, inputs: int) -> Named:
    return [*bare(path, out, inputs), (f"{path}.bias", (out,))]


def batch_norm(path: str, width: int) -> Named:
    return [(f"{path}.{name}", (width,)) for name in ("weight", "bias", "running_mean", "running_var")]


def own_norm(path: str, width: int) -> Named:
    return [(f"{path}.gamma", (1, width, 1)), (f"{path}.beta", (1, width, 1))]


def temporal(path: str) -> Named:
    """Conv-TasNet's block: everything without a bias, a slope and a norm of its own between (Luo 2019, fig. 1)."""
    made = [*bare(f"{path}.0", 192, 96, 1), *bare(f"{path}.1", 1), *own_norm(f"{path}.2", 192)]
    return [*made, *bare(f"{path}.3", 192, 1, 3), *bare(f"{path}.4", 1), *bare(f"{path}.5", 96, 192, 1)]


def test_a_filter_of_one_channel_between_as_many_is_depthwise_behind_slopes_and_norms() -> None:
    structure = told([*bare("first", 96, 64, 1), *temporal("block")])
    assert layer(structure, "block.3").kind is K.DEPTHWISE
    assert layer(structure, "block.2").kind is K.NORM


def test_what_makes_one_signal_of_many_channels_is_not_called_depthwise() -> None:
    """(256, 1, 16) without a bias: a decoder's transposed convolution to one channel, as likely."""
    structure = told([*conv("mask", 256, 128, 1), *bare("decoder", 256, 1, 16)])
    last = layer(structure, "decoder")
    assert last.kind is K.EITHER_CONVOLUTION
    assert layers_text([last]) == "16-wide 1-d convolution (either way, unless depthwise) 1-256; without a bias"


def test_filters_of_one_channel_are_hedged_where_no_neighbour_tells() -> None:
    named = [*conv("a", 32, 3), *conv("b", 64, 1)]
    assert "unless depthwise" in layer(told(named, ordered=False), "b").more
    # Three channels before it cannot be shared out among 64 filters, nor can the first layer's input.
    assert layer(told([*conv("a", 3, 3), *conv("b", 64, 1)]), "b").more == ""
    assert layer(told([*conv("a", 32, 1), *conv("b", 64, 32)]), "a").more == ""


def test_square_convolutions_are_not_counted_as_perhaps_transposed() -> None:
    assert told([*conv("a", 32, 3), *conv("b", 32, 32), *conv("c", 32, 32, 1, 1)]).counts == "3 convolutions."
    many = [*bare("up", 32, 16, 2, 2), ("up.bias", (16,)), *(t for n in range(5) for t in conv(f"c{n}", 16, 16))]
    assert told(many).counts == "1 transposed convolution, 5 convolutions of either way."


@pytest.mark.parametrize(
    ("name", "kind"),
    [("relu1", K.PRELU), ("act", K.PRELU), ("prelu", K.PRELU), ("norm2", K.SCALE), ("2", K.SLOPE), ("final", K.SLOPE)],
)
def test_a_row_alone_is_a_slope_or_a_scale_as_its_name_says(name: str, kind: K) -> None:
    structure = told([*conv("conv", 48, 3), *bare(name, 48)])
    assert layer(structure, name).kind is kind


def test_the_word_for_a_row_that_may_be_either() -> None:
    structure = told([*conv("net.0", 48, 3), *bare("net.1", 48)])
    assert says(structure, Topic.LAYERS) == ["net.0: 3x3 convolution 3-48; a scale or PReLU slope of 48."]


def test_a_gain_alone_in_its_module_is_a_scale_and_one_beside_others_is_not() -> None:
    structure = told([*linear("a", 64, 32), ("norm.scale", (64,)), ("head.scale", (64,)), ("head.shift", (64,))])
    assert layer(structure, "norm").kind is K.SCALE
    assert layer(structure, "head.scale").kind is K.TENSOR


def test_tables_of_a_list_are_told_with_their_rows_the_right_way_round() -> None:
    rows = (119, 5, 12)
    fields = [t for n, size in enumerate(rows) for t in bare(f"atom_embedding_list.{n}", size, 150)]
    structure = told([*fields, *linear("out", 12, 150)])
    assert [one.inputs for one in structure.layers if one.kind is K.EMBEDDING] == list(rows)
    (takes,) = says(structure, Topic.TAKES)
    assert takes == "atom_embedding_list has 3 tables of vectors of 150, with as many rows: 119, 5, 12."
    # A table takes no width: what puts out as many as it has rows still ends the network.
    assert says(structure, Topic.ENDS_IN) == ["out puts out 12 values, and no other layer takes so many."]


def test_neighbours_called_tables_are_of_one_kind() -> None:
    """Seven days, and seven features that a layer takes."""
    sizes = {"hour_embed": 24, "weekday_embed": 7, "month_embed": 13}
    named = [*conv("value", 256, 7, 3), *(t for name, size in sizes.items() for t in bare(f"time.{name}", size, 256))]
    structure = told([*named, *linear("out", 7, 256)])
    assert [layer(structure, f"time.{name}").kind for name in sizes] == [K.EMBEDDING] * 3
    # Linear layers of one input to a common width, called so too.
    widths = [*bare("node_emb", 64, 16), *bare("edge_emb", 64, 16), *linear("a", 64, 64), *linear("b", 3, 64)]
    assert {one.kind for one in told(widths).layers} == {K.MATRIX, K.LINEAR}


def test_a_matrix_called_a_table_and_not_shown_to_be_one_has_both_readings() -> None:
    structure = told([*linear("up", 64, 32), *bare("pitch_embed", 64, 16), *linear("down", 3, 64)])
    (found,) = [one for one in says(structure, Topic.LAYERS) if "pitch_embed" in one]
    assert "pitch_embed 16-64 (or a table of 64 x 16)" in found


@pytest.mark.parametrize("name", ["token_mixer", "pos_proj", "position_mlp"])
def test_a_word_of_tables_among_others_names_none(name: str) -> None:
    assert layer(told([*bare("tok", 900, 64), *bare(name, 700, 64)]), name).kind is K.MATRIX
    assert layer(told([*bare("tok", 900, 64), *bare(name, 700, 64)]), "tok").kind is K.EMBEDDING


def test_a_kernel_as_wide_as_the_vectors_of_a_table_sees_no_picture() -> None:
    words = [*bare("char_embeds", 85, 25), *conv("char_cnn", 30, 1, 3, 25), *linear("tags", 19, 30)]
    structure = told(words)
    assert not [one for one in says(structure, Topic.TAKES) if "channel" in one]
    assert "likely reads 3 of its vectors at a time" in says(structure, Topic.FED)[0]
    picture = told([*conv("conv", 30, 1, 5, 5), *linear("tags", 19, 30)])
    assert says(picture, Topic.TAKES) == ["conv takes one channel (as a grey picture has), unless it is depthwise."]


def test_blocks_inside_a_block_and_experts_are_counted() -> None:
    def block(path: str) -> Named:
        experts = [
            t
            for n in range(6)
            for t in [*bare(f"{path}.experts.{n}.up", 96, 64), *bare(f"{path}.experts.{n}.down", 64, 96)]
        ]
        return [*bare(f"{path}.gate", 6, 64), *experts]

    structure = told([t for n in range(3) for t in block(f"layers.{n}")])
    (repeat,) = says(structure, Topic.REPEATS)
    assert repeat == (
        "layers.0 to layers.2 are 3 equal blocks: matrix without bias gate 64-6; "
        "6 experts experts.0 to 5 (matrices without bias 64-96-64)."
    )
    (stack,) = structure.stacks
    assert [inner.count for inner in stack.inner] == [6] and equal_text(stack) in repeat
    nested = told([t for r in range(3) for n in range(4) for t in temporal(f"net.{r}.{n}")])
    assert "are 3 equal blocks: 4 equal blocks 0 to 3 (1-wide" in says(nested, Topic.REPEATS)[0]


def residual(path: str, inputs: int, out: int) -> Named:
    made = [*batch_norm(f"{path}.body.0", inputs), *bare(f"{path}.body.1", out, inputs, 3, 3)]
    made += [*bare(f"{path}.body.2", out), *bare(f"{path}.body.3", out, out, 3, 3), *batch_norm(f"{path}.body.4", out)]
    return made + ([*bare(f"{path}.short.0", out, inputs, 1, 1)] if inputs != out else [])


def test_blocks_with_a_shortcut_in_some_are_one_stack_with_its_runs() -> None:
    widths = [64, 64, 64, 128, 128, 128, 256, 256]
    named = [t for n in range(7) for t in residual(f"body.{n}", widths[n], widths[n + 1])]
    (repeat,) = says(told(named), Topic.REPEATS)
    assert repeat.startswith("body.0 to body.6 are 7 blocks of one build: ")
    assert "in runs of 2-3-2 blocks whose last convolution puts out 64-128-256" in repeat
    assert "each with first a batch norm, a scale or PReLU slope, a batch norm" in repeat
    assert "besides short.0 in 2, 5: 1x1 convolution 64-128 / 1x1 convolution 128-256" in repeat
    # Blocks of other layers are no stack because some of their names agree.
    odd = [*residual("body.0", 64, 64), *conv("body.1.up", 64, 64, 5, 5), *residual("body.2", 64, 64)]
    assert says(told(odd), Topic.REPEATS) == []


def test_stages_of_more_blocks_are_told_one_by_one() -> None:
    def stage(number: int, blocks: int, width: int) -> Named:
        return [t for n in range(blocks) for t in residual(f"layer{number}.{n}", width, width)]

    structure = told([*stage(1, 2, 64), *stage(2, 3, 128), *stage(3, 2, 256)])
    assert [claim.value for claim in structure.claims if claim.topic is Topic.REPEATS] == [2, 3, 2]


def test_a_norm_made_first_is_called_first_only_by_numbers() -> None:
    """RAFT makes its norm before the convolution that it follows."""
    made = told([*batch_norm("net.norm1", 64), *conv("net.conv1", 64, 3, 7, 7)])
    assert says(made, Topic.LAYERS) == ["net.conv1: 7x7 convolution 3-64; a batch norm of 64."]
    numbered = told([*batch_norm("net.0", 3), *conv("net.1", 64, 3, 7, 7)])
    assert says(numbered, Topic.LAYERS) == ["net.1: 7x7 convolution 3-64; first a batch norm of 3."]


def test_twelve_modules_with_two_blocks_each_are_one_sentence() -> None:
    def branch(n: int, kernel: int) -> Named:
        return [t for c in (1, 2) for m in range(3) for t in conv(f"blocks.{n}.convs{c}.{m}", 32, 32, kernel)]

    stem = conv("stem", 32, 80, 7)
    three = told([*stem, *(t for n, kernel in enumerate((3, 7, 11)) for t in branch(n, kernel))])
    (repeat,) = says(three, Topic.REPEATS)
    assert repeat == (
        "Each of 3 modules blocks.0 to blocks.2 has 2 equal blocks convs1 to convs2: 3-wide 1-d convolutions "
        "32-32-32-32 / 7-wide 1-d convolutions 32-32-32-32 / 11-wide 1-d convolutions 32-32-32-32."
    )
    assert len(says(told([*branch(0, 3), *branch(1, 7)]), Topic.REPEATS)) == 2


def test_two_networks_of_one_build_are_told_once() -> None:
    def net(path: str, out: int) -> Named:
        return [*linear(f"{path}.first", 256, 63), *linear(f"{path}.last", out, 256)]

    structure = told([*net("coarse", 4), *net("fine", 4)])
    assert says(structure, Topic.REPEATS) == ["coarse and fine are built alike, all shapes equal."]
    assert [one.split(":")[0] for one in says(structure, Topic.LAYERS)] == ["coarse"]
    other = told([*net("coarse", 4), *net("fine", 5)])
    assert says(other, Topic.REPEATS) == [] and len(says(other, Topic.LAYERS)) == 2


def test_streams_that_differ_in_norms_are_not_called_equal() -> None:
    def stream(path: str, *, norm: bool) -> Named:
        made = conv(f"{path}.conv1", 64, 3, 7, 7) + (batch_norm(f"{path}.norm1", 64) if norm else [])
        return [*made, *conv(f"{path}.conv2", 128, 64)]

    (alike,) = says(told([*stream("fnet", norm=False), *stream("cnet", norm=True)]), Topic.REPEATS)
    assert alike.endswith("with equal convolutions and matrices; norms differ: fnet none, cnet 1 norm.")


def test_norms_of_a_list_are_in_a_row_of_their_own() -> None:
    norms = [t for n in range(3) for t in batch_norm(f"norms.{n}", 150)]
    structure = told([*linear("a", 150, 9), *norms, *linear("b", 12, 150)])
    assert "norms" in " ".join(says(structure, Topic.LAYERS))
    alone = told([*(t for n in range(2) for t in residual(f"b.{n}", 64, 64)), *norms])
    assert says(alone, Topic.LAYERS) == ["Beside them norms: 3 batch norms of 150."]


def test_a_legend_stands_only_where_its_notation_does() -> None:
    one = told([*linear("a", 150, 9), *conv("b", 4, 3)])
    assert notation(one.claims) == ""
    chain = told([*conv("a.0", 32, 3), *conv("a.1", 64, 32)])
    assert notation(chain.claims).startswith('"3x3 convolutions 3-64-128"') and " / " not in notation(chain.claims)


def printed(shown: object) -> str:
    console = Console(file=io.StringIO(), width=400)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_is_assumed_of_an_unknown_network_is_what_no_shape_tells() -> None:
    buffer = io.BytesIO()
    torch.save({name: torch.zeros(shape) for name, shape in [*conv("odd.a", 7, 3), *conv("odd.b", 5, 7)]}, buffer)
    recognition = recognise(open_checkpoint(buffer.getvalue()))
    assert recognition.structure is not None
    text = printed(assumed_text(recognition))
    assert set(Question) == set(REASONS)
    for one in recognition.structure.open:
        (line,) = [line for line in text.splitlines() if line.startswith(one)]
        assert REASONS[one].why in line and REASONS[one].confirm in line
    # A chain of two: no legend of blocks.
    shown = printed(structure_text(recognition.structure))
    assert "are one of 3 to 64 channels" in shown and "of a block and of a later one" not in shown


def test_a_recurrent_layer_in_blocks_is_told_once() -> None:
    def block(n: int, inputs: int, out: int) -> Named:
        sizes = {"weight_ih_l0": (768, inputs), "weight_hh_l0": (768, 192), "bias_ih_l0": (768,), "bias_hh_l0": (768,)}
        return [*((f"rnn.{n}.rnn.{name}", shape) for name, shape in sizes.items()), *linear(f"rnn.{n}.fc", out, 192)]

    structure = told([*block(0, 512, 192), *block(1, 192, 63)])
    assert says(structure, Topic.REPEATS) == [
        "rnn.0 to rnn.1 are 2 blocks of one build: linear layer 192-192-63 from block to block; LSTM as told above."
    ]
    assert len(says(structure, Topic.RECURRENT)) == 2


def test_what_upsamples_each_channel_by_itself_is_not_called_depthwise() -> None:
    """A transposed convolution in as many groups as channels has the same (C, 1, 4, 4)."""
    structure = told([*conv("a", 21, 3), *bare("up", 21, 1, 4, 4), *conv("b", 5, 21)])
    assert layer(structure, "up").kind is K.EITHER_CONVOLUTION
    assert layer(told([*conv("a", 21, 3), *bare("dw", 21, 1, 3, 3), *conv("b", 5, 21)]), "dw").kind is K.DEPTHWISE


def test_linear_layers_beside_each_other_called_embeddings_are_no_tables() -> None:
    same = [*linear("pre", 64, 9), *bare("node_emb", 128, 64), *bare("edge_emb", 128, 64), *linear("a", 128, 128)]
    structure = told([*same, *linear("o", 2, 128)])
    assert not [one for one in structure.layers if one.kind is K.EMBEDDING]
    # Heads at the end of a list, whose rows nothing takes.
    heads = [t for n in range(3) for t in bare(f"embeddings.{n}", 128, 512)]
    assert not [one for one in told([*conv("a", 512, 3), *heads]).layers if one.kind is K.EMBEDDING]


def test_no_other_layer_takes_so_many_is_counted_without_the_layer_itself() -> None:
    """A latent's last convolution, made behind a decoder that takes as many."""
    structure = told(
        [*conv("enc", 8, 3), *conv("dec", 32, 4), *conv("up", 3, 32), *conv("post_quant_conv", 4, 4, 1, 1)]
    )
    assert says(structure, Topic.ENDS_IN) == []
    assert says(structure, Topic.LIKELY_END) == [
        "post_quant_conv, the last layer in the file, puts out 4 values at every place."
    ]


def test_more_pairs_of_twins_than_are_named_keep_their_rows() -> None:
    def net(path: str, width: int) -> Named:
        return [*linear(f"{path}.first", width, 63), *linear(f"{path}.last", 4, width)]

    structure = told(
        [t for n in range(9) for side in ("left", "right") for t in net(f"{side}_{'abcdefghi'[n]}", 100 + n)]
    )
    assert len(says(structure, Topic.REPEATS)) == 8
    assert sum("109" in one or "108" in one for one in says(structure, Topic.LAYERS)) == 2
