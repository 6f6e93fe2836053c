"""What a stranger's networks were wrongly told, or not told at all: names and shapes alone, in the order of a file."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
import torch

from inspector import open_checkpoint
from inspector.architectures.index import load_index
from inspector.architectures.structure.describe import describe_structure
from inspector.architectures.structure.nearest import nearest
from inspector.architectures.structure.types import Layer, Structure, Topic
from inspector.architectures.structure.types import LayerKind as K
from inspector.architectures.structure.wording import layers_text
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import Shape, StateDict, StateRole, TensorInfo
from inspector.overview import summarise

Named = list[tuple[str, Shape]]


def state(named: Named) -> StateDict:
    tensors = tuple(
        TensorInfo(name=n, path=(n,), shape=s, dtype="float32", nbytes=0, storage_id=None) for n, s in named
    )
    tree = module_tree(tensors)
    return StateDict(path=(), role=StateRole.WEIGHTS, why="", kind="", tensors=tensors, modules=tree, ordered=True)


def told(named: Named) -> Structure:
    return describe_structure(state(named))


def says(structure: Structure, topic: Topic) -> list[str]:
    return [claim.says for claim in structure.claims if claim.topic is topic]


def layer(structure: Structure, path: str) -> Layer:
    (found,) = [one for one in structure.layers if one.path == path]
    return found


def conv(path: str, out: int, inputs: int, *kernel: int) -> Named:
    return [(f"{path}.weight", (out, inputs, *(kernel or (3, 3)))), (f"{path}.bias", (out,))]


def bare(path: str, *shape: int) -> Named:
    return [(f"{path}.weight", shape)]


def linear(path: str, out: int, inputs: int) -> Named:
    return [(f"{path}.weight", (out, inputs)), (f"{path}.bias", (out,))]


def batch_norm(path: str, width: int) -> Named:
    return [(f"{path}.{name}", (width,)) for name in ("weight", "bias", "running_mean", "running_var")]


def branch(path: str, widths: tuple[int, ...], kernels: tuple[int, ...]) -> Named:
    made: Named = []
    for n, (inputs, out, kernel) in enumerate(zip((1, *widths), widths, kernels, strict=False)):
        made += conv(f"{path}.{n}.conv", out, inputs, kernel, kernel)
    return made


def test_branches_of_other_kernels_are_not_of_one_build_and_join() -> None:
    structure = told(
        [
            *branch("branch1", (16, 8), (9, 7)),
            *branch("branch2", (20, 10), (7, 5)),
            *branch("branch3", (24, 12), (5, 3)),
            *conv("fuse.0", 1, 30, 1, 1),
        ]
    )
    assert says(structure, Topic.REPEATS) == []
    assert says(structure, Topic.LAYERS)[:2] == [
        "branch1: 9x9 convolution 1-16, 7x7 convolution 16-8.",
        "branch2: 7x7 convolution 1-20, 5x5 convolution 20-10.",
    ]
    (joined,) = says(structure, Topic.JOINS)
    assert "takes 30: as many as branch1, branch2, branch3 put out together (8 + 10 + 12)" in joined
    # One channel is known, grey is not.
    (takes,) = says(structure, Topic.TAKES)
    assert takes == "branch1.0.conv takes one channel (as a grey picture has), unless it is depthwise."


def test_branches_of_one_build_are_a_stack_with_the_widths_of_each() -> None:
    named = [*branch("branch1", (16, 8), (5, 3)), *branch("branch2", (20, 10), (5, 3))]
    (repeat,) = says(told(named), Topic.REPEATS)
    assert repeat.endswith("2 blocks of one build: 5x5 convolution 1-16 / 1-20, 3x3 convolution 16-8 / 20-10.")


@pytest.mark.parametrize("name", ["unembed", "unembedding", "to_embed", "out_embed", "patch_embed", "outputEmbedding"])
def test_what_puts_out_or_makes_vectors_is_no_table(name: str) -> None:
    named = [*bare("tok_embed", 900, 64), *bare("body", 64, 64), *bare(name, 700, 64)]
    structure = told(named)
    assert [one.path for one in structure.layers if one.kind is K.EMBEDDING] == ["tok_embed"]
    assert layer(structure, name).kind is K.MATRIX


@pytest.mark.parametrize(
    "name", ["token_table", "wte", "embed_tokens", "tokEmbedding", "word_embeddings", "station_emb"]
)
def test_a_table_is_told_by_its_name_where_nothing_takes_its_rows(name: str) -> None:
    structure = told([*bare(name, 900, 64), *bare("up", 256, 64), *bare("down", 64, 256)])
    assert layer(structure, name).kind is K.EMBEDDING
    # A layer that takes as many as it has rows: what it puts out.
    assert layer(told([*bare(name, 256, 64), *bare("down", 64, 256)]), name).kind is K.MATRIX


def test_first_matrices_of_no_telling_name_stay_open_and_their_sums_are_told() -> None:
    tables = {"user": (6041, 32), "gender": (3, 4), "age": (8, 4), "item": (3953, 32), "genre": (19, 8)}
    named = [(f"{name}.weight", shape) for name, shape in tables.items()]
    structure = told([*named, *linear("tower_a.0", 128, 40), *linear("tower_b.0", 128, 40)])
    (open_,) = says(structure, Topic.FED)
    assert open_.startswith("user 6,041 x 32, gender 3 x 4, age 8 x 4")
    assert open_.endswith("tables of vectors, or linear layers without bias.")
    assert [claim.path for claim in structure.claims if claim.topic is Topic.JOINS] == ["tower_a.0", "tower_b.0"]
    assert "user, gender, age joined (32 + 4 + 4)" in says(structure, Topic.JOINS)[0]
    # A table that is left over: the sums were chance.
    assert says(told([*named, *linear("tower_a.0", 128, 40)]), Topic.JOINS) == []


def test_a_square_convolution_stays_open_in_the_counts() -> None:
    named: Named = [*conv("down", 32, 3), *bare("up", 32, 16, 2, 2), ("up.bias", (16,)), *conv("final", 16, 16)]
    structure = told(named)
    assert structure.counts == "1 or 2 convolutions, 1 or 2 transposed convolutions."
    assert layers_text([layer(structure, "final")]) == "3x3 convolution 16-16 (either way)"
    assert says(told([*conv("0", 32, 32), *conv("2", 3, 32)]), Topic.LAYERS) == [
        "0 to 2: 3x3 convolutions 32-32-3 (32-32 either way)."
    ]
    # Of a single place there are not two ways.
    assert told([*conv("a", 32, 3), *conv("b", 32, 32, 1, 1)]).counts == "2 convolutions."


def test_modulated_convolutions_are_two_dimensional() -> None:
    named: Named = [("conv.weight", (1, 96, 128, 3, 3)), *linear("conv.modulation", 128, 192)]
    structure = told(named)
    found = layer(structure, "conv")
    assert (found.kind, found.inputs, found.outputs, found.kernel) == (K.MODULATED, 128, 96, (3, 3))
    assert structure.counts == "1 modulated convolution, 1 linear layer."
    # Nothing that says what the first size is for: no layer is made up.
    assert layer(told([("conv.weight", (1, 96, 128, 3, 3))]), "conv.weight").kind is K.TENSOR
    # A volume that becomes one channel.
    assert layer(told(conv("conv", 1, 96, 3, 3, 3)), "conv").kernel == (3, 3, 3)


def test_a_side_branch_made_first_is_not_the_input() -> None:
    """PointNet's: a T-Net of three coordinates, and points of six numbers."""
    net = [*conv("feat.stn.conv1", 64, 3, 1), *linear("feat.stn.fc", 9, 64)]
    points = [*conv("feat.conv1", 32, 6, 1), *linear("head", 15, 32)]
    structure = told([*net, *points])
    assert says(structure, Topic.TAKES) == []
    assert [claim.value for claim in structure.claims if claim.topic is Topic.FED] == [3, 6]
    assert [claim.value for claim in told(net).claims if claim.topic is Topic.TAKES] == [3]


def test_a_width_of_a_table_or_with_a_table_in_it_is_not_the_input() -> None:
    codes: Named = [("task_codes", (11, 24)), *linear("trunk.0", 96, 24), *linear("trunk.2", 5, 96)]
    structure = told(codes)
    assert says(structure, Topic.TAKES) == []
    assert says(structure, Topic.FED) == ["trunk.0 takes 24 values, as wide as task_codes (11x24)."]
    with_table = told([*bare("station_emb", 57, 6), *linear("enc.0", 72, 15), *linear("enc.1", 3, 72)])
    assert "perhaps among them (15 = 9 + 6)" in says(with_table, Topic.FED)[0]


def test_many_tables_are_cut_with_a_count() -> None:
    structure = told([*(t for n in range(40) for t in bare(f"field{n}.embed", 100 + n, 16)), *linear("mlp", 1, 640)])
    (takes,) = says(structure, Topic.TAKES)
    assert takes.startswith("40 tables look up vectors: field0.embed 100 x 16, ") and takes.endswith(" and 36 more.")
    named = [t for n in range(40) for t in bare(f"{'abcdefgh'[n // 5]}{'vwxyz'[n % 5]}.embed", 100 + n, 16)]
    lone = says(told([*named, *linear("mlp", 1, 640)]), Topic.TAKES)
    assert len(lone) == 9 and lone[-1] == "32 more look up vectors."


def test_half_of_what_flows_through_is_not_the_input() -> None:
    """A block of a flow sees half of its channels; experts side by side see all of the input."""
    flow = [t for n in range(3) for t in [*conv(f"steps.{n}.0", 64, 6), *conv(f"steps.{n}.1", 12, 64)]]
    assert says(told(flow), Topic.TAKES) == []
    assert "half of the 12 that layers put out" in says(told(flow), Topic.FED)[0]
    experts = [t for n in range(3) for t in [*linear(f"experts.{n}.0", 48, 64), *linear(f"experts.{n}.1", 20, 48)]]
    assert [claim.value for claim in told(experts).claims if claim.topic is Topic.TAKES] == [64]


def test_cells_of_a_convolutional_lstm_take_their_state_as_well() -> None:
    widths = [(33, 128), (80, 192), (96, 192)]
    named = [t for n, (i, o) in enumerate(widths) for t in conv(f"cells.{n}.conv", o, i, 5, 5)]
    structure = told([*named, *conv("head", 1, 48, 1, 1)])
    assert [claim.value for claim in structure.claims if claim.topic is Topic.TAKES] == [1]
    (cell,) = says(structure, Topic.RECURRENT)
    assert "states of 32, 48, 48 channels" in cell and "33 = 1 + 32, 80 = 32 + 48, 96 = 48 + 48" in cell
    # One width that does not fit, and nothing is a state.
    assert says(told([*conv("a.conv", 128, 33, 5, 5), *conv("b.conv", 192, 81, 5, 5)]), Topic.RECURRENT) == []


def test_a_chain_without_biases_runs_as_its_norms_say() -> None:
    widths = (100, 64, 32, 3)
    named: Named = []
    for n, (inputs, out) in enumerate(pairwise(widths)):
        named += bare(f"main.{3 * n}", inputs, out, 4, 4)
        named += batch_norm(f"main.{3 * n + 1}", out) if out > 3 else []
    structure = told(named)
    assert says(structure, Topic.LAYERS) == [
        "main: 4x4 transposed convolutions 100-64-32-3; a batch norm after 2 of 3; without biases."
    ]
    assert structure.counts.startswith("3 transposed convolutions, ")


def test_heads_of_a_table_of_distances() -> None:
    projections = [t for name in ("wq", "wk", "wv") for t in bare(f"att.{name}", 192, 192)]
    structure = told([*projections, *bare("att.rel_bias", 63, 6)])
    (heads,) = says(structure, Topic.HEADS)
    assert heads == "att has 6 heads, a column of rel_bias for each (63 rows = 2 x 32 - 1 distances)."
    assert not any("how many heads" in one for one in structure.open)
    assert says(told([*projections, *bare("att.rel_bias", 63, 7)]), Topic.HEADS) == []
    other = [t for name in ("wq", "wk", "wv") for t in bare(f"cross.{name}", 192, 192)]
    both = told([*projections, *bare("att.rel_bias", 63, 6), *other])
    assert "how many heads the attention without such a table has" in both.open


def test_long_chains_are_cut_with_a_count() -> None:
    widths = [3, *(16 + n for n in range(40))]
    pairs = pairwise(widths)
    structure = told([t for n, (i, o) in enumerate(pairs) for t in conv(f"net.{n}", o, i)])
    (line,) = says(structure, Topic.LAYERS)
    assert line == "net: 40 3x3 convolutions 3-16-17-18-19-20-... 29 more ...-50-51-52-53-54-55."
    same = told([*conv("net.0", 64, 1), *(t for n in range(15) for t in conv(f"net.{n + 1}", 64, 64))])
    assert says(same, Topic.LAYERS) == ["net: 16 3x3 convolutions 1-64 (16 times)."]


def test_blocks_of_somebody_s_own_tensors_are_told_with_their_shapes() -> None:
    named: Named = []
    for n, (inputs, out) in enumerate([(784, 64), (64, 10)]):
        named += [(f"layers.{n}.base_weight", (out, inputs)), (f"layers.{n}.spline_weight", (out, inputs, 8))]
    (repeat,) = says(told(named), Topic.REPEATS)
    assert "base_weight 64x784, 10x64; spline_weight 64x784x8, 10x64x8" in repeat


def test_steps_up_shuffles_and_groups() -> None:
    skips: Named = [*conv("a", 24, 3), *conv("b", 48, 24), *conv("c", 96, 48)]
    for name, width in (("d", 48), ("e", 24)):
        skips += [*bare(f"up_{name}", 2 * width, width, 2, 2), (f"up_{name}.bias", (width,))]
        skips += conv(f"mend_{name}", width, 2 * width)
    (joined,) = says(told(skips), Topic.JOINS)
    assert joined.startswith("After each of 2 transposed convolutions") and "96 = 48 of up_d and 48 more" in joined

    shuffle = [*conv("head", 56, 3), *conv("up.0", 224, 56), *conv("up.2", 224, 56), *conv("tail", 3, 56)]
    assert (
        "as before a pixel shuffle by 2, 2 times one behind the other: 4 times as high and wide"
        in says(told(shuffle), Topic.JOINS)[0]
    )
    # A bottleneck's last puts out four times as many too.
    bottleneck = [*conv("a.0", 64, 3), *conv("a.1", 256, 64, 1, 1), *conv("b.0", 64, 256, 1, 1), *conv("b.1", 64, 64)]
    assert says(told(bottleneck), Topic.JOINS) == []
    wide = [*conv("a.0", 64, 3), *conv("a.1", 256, 64), *conv("b.0", 64, 64), *conv("b.1", 9, 256)]
    assert says(told(wide), Topic.JOINS) == []

    grouped = told([*conv("net.0", 96, 3), *batch_norm("net.1", 96), *conv("net.4", 256, 48, 5, 5)])
    assert says(grouped, Topic.JOINS) == ["net.4 sees 48 of 96: in two groups, or after a gate that halves them."]


def separable(first: int, classes: int, *, head: bool = True) -> Named:
    """MobileNet-v1's body at half its width (Howard 2017, table 1)."""
    widths = [16, 32, 64, 64, 128, 128, *[256] * 6, 512, 512]
    named: Named = [*bare("stem.0", 16, first, 3, 3), *batch_norm("stem.1", 16)]
    for n, (inputs, out) in enumerate(pairwise(widths)):
        named += [*bare(f"body.{n}.0", inputs, 1, 3, 3), *batch_norm(f"body.{n}.1", inputs)]
        named += [*bare(f"body.{n}.3", out, inputs, 1, 1), *batch_norm(f"body.{n}.4", out)]
    return [*named, *(linear("letter", classes, 512) if head else [])]


@pytest.mark.parametrize("first", [1, 3])
def test_the_body_of_a_mobilenet_is_near_whatever_it_sees(first: int) -> None:
    structure = told(separable(first, 62))
    (near,) = says(structure, Topic.NEAREST)
    assert "mobilenetv1_100" in near and "about 0.5 times as wide" in near and "62 out instead of 1,000" in near
    assert ("1 channel in instead of 3" in near) is (first == 1)
    # Where the short answer stands, it is in it.
    assert near in structure.short


def test_a_body_with_another_head_is_near_and_one_layer_less_is_not() -> None:
    index = load_index()
    heads = nearest(state([*separable(3, 128), *linear("again", 9, 128)]).tensors, index)
    assert heads is not None and "convolutions of timm/mobilenetv1_100" in heads.says
    assert "behind them 2 matrices, the last with 9 rows" in heads.says and heads.value == 27
    shorter = [one for one in separable(3, 62) if not one[0].startswith("body.7.")]
    assert nearest(state(shorter).tensors, index) is None


def test_open_has_the_claims_too() -> None:
    buffer = io.BytesIO()
    torch.save({f"odd.{n}.weight": torch.zeros(n + 5, n + 4) for n in range(3)}, buffer)
    overview = summarise(open_checkpoint(buffer.getvalue()))
    assert [claim.says for claim in overview.claims if claim.topic is Topic.LAYERS] == [
        "odd: matrices without bias 4-5-6-7."
    ]
