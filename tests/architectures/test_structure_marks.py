"""What names and the widths around them tell of a stranger's networks: attention, ends, sums, tensors of their own."""

from __future__ import annotations

import pytest

from inspector.architectures.structure.types import Topic
from tests.architectures.test_structure_stranger import Named, bare, batch_norm, conv, linear, says, told


@pytest.mark.parametrize(
    "names",
    [("w_qs", "w_ks", "w_vs"), ("query_projection", "key_projection", "value_projection"), ("toQ", "toK", "toV")],
)
def test_attention_is_told_by_the_names_of_its_projections(names: tuple[str, ...]) -> None:
    blocks = [t for n in range(2) for name in names for t in linear(f"dec.{n}.cross_attention.{name}", 96, 96)]
    structure = told(blocks)
    (projected,) = says(structure, Topic.PROJECTIONS)
    assert projected == (
        "2 modules, dec.0.cross_attention to dec.1.cross_attention, have attention's projections (cross-attention by "
        "its name): query, key, value 96-96."
    )
    assert "how many heads the attention has" in structure.open
    assert says(told([t for name in names[:2] for t in linear(f"a.{name}", 96, 96)]), Topic.PROJECTIONS) == []


def test_joined_projections_kept_keys_and_shared_values() -> None:
    joint = [("attn.mem_kv", (2, 4, 4, 32)), *bare("attn.to_qkv", 384, 64, 1, 1), *conv("attn.to_out", 64, 128, 1, 1)]
    structure = told([*conv("a", 64, 3), *joint])
    assert [claim.value for claim in structure.claims if claim.topic is Topic.HEADS] == [4]
    assert "query, key and value in one, 64 to 3 x 128" in says(structure, Topic.PROJECTIONS)[0]
    assert not any("how many heads" in one for one in structure.open)
    other = [("attn.mem_kv", (2, 5, 4, 32)), *joint[1:]]
    assert says(told([*conv("a", 64, 3), *other]), Topic.HEADS) == []
    grouped = told([*bare("attn.proj_q", 384, 384), *bare("attn.proj_kv", 192, 384), *bare("attn.proj_o", 384, 384)])
    assert "likely shares each key and value between 4 heads" in says(grouped, Topic.ATTENTION)[0]
    plain = told([*bare("attn.proj_q", 384, 384), *bare("attn.proj_kv", 768, 384), *bare("attn.proj_o", 384, 384)])
    assert says(plain, Topic.ATTENTION) == []


def test_the_last_layer_is_told_with_a_hedge_where_others_take_as_many() -> None:
    named = [*conv("stem", 48, 3), *conv("body.0", 48, 48), *conv("tail", 3, 48)]
    structure = told(named)
    assert says(structure, Topic.ENDS_IN) == []
    assert says(structure, Topic.LIKELY_END) == [
        "tail, the last layer in the file, puts out 3 values at every place, as many as the first takes."
    ]
    called = told([*conv("stem", 48, 3), *conv("body.0", 48, 48), *conv("final_conv", 3, 48)])
    assert says(called, Topic.LIKELY_END)[0].endswith("3 values at every place, likely the output.")
    # A head at the beginning is none of the end, and what is certain needs no hedge.
    early = told([*conv("head.0", 48, 3), *(t for n in range(5) for t in conv(f"b.{n}", 48, 48)), *conv("tail", 3, 48)])
    assert [claim.path for claim in early.claims if claim.topic is Topic.LIKELY_END] == ["tail"]
    assert says(told([*linear("a", 48, 5), *linear("head", 7, 48)]), Topic.LIKELY_END) == []


def test_factors_of_a_modulated_convolution_end_nothing() -> None:
    named = [("rgb.conv.weight", (1, 3, 64, 1, 1)), *linear("rgb.conv.modulation", 64, 256)]
    structure = told([*linear("style", 256, 256), *named])
    assert [claim.path for claim in structure.claims if claim.topic in {Topic.LIKELY_END, Topic.ENDS_IN}] == [
        "rgb.conv"
    ]


def test_a_codebook_transitions_capsules_and_edges_of_bins() -> None:
    book = told(
        [*conv("a", 64, 3), ("quant.embed", (64, 512)), ("quant.cluster_size", (512,)), ("quant.embed_avg", (64, 512))]
    )
    assert says(book, Topic.OWN) == [
        "quant has a codebook of 512 vectors of 64, with moving averages (embed_avg): a vector quantiser."
    ]
    assert says(told([*conv("a", 64, 3), ("quant.embed", (64, 512)), ("quant.other", (512,))]), Topic.OWN) == []

    tags = [("transitions", (19, 19)), *linear("tag", 19, 300)]
    assert "as the transitions of a conditional random field" in says(told(tags), Topic.OWN)[0]
    assert says(told([("transitions", (19, 19)), *linear("tag", 18, 300)]), Topic.OWN) == []

    capsules = [*conv("a", 256, 1, 9, 9), ("digits.route_weights", (10, 1152, 8, 16)), *linear("decoder", 784, 160)]
    assert "1,152 capsules of 8 routed to 10 capsules of 16" in says(told(capsules), Topic.OWN)[0]
    assert says(told([*capsules[:-2], *linear("decoder", 784, 161)]), Topic.OWN) == []

    bins = [("var.pitch_bins", (255,)), *bare("var.pitch_embedding", 256, 192), *linear("out", 3, 192)]
    assert "255 numbers, as edges between the 256 rows of var.pitch_embedding" in says(told(bins), Topic.OWN)[0]
    assert says(told([("var.pitch_bins", (254,)), *bins[1:]]), Topic.OWN) == []


def squeeze(path: str, width: int, ratio: int) -> Named:
    made = conv(f"{path}.conv", width, width)
    return [
        *made,
        *conv(f"{path}.se.0", width // ratio, width, 1, 1),
        *conv(f"{path}.se.2", width, width // ratio, 1, 1),
    ]


def test_squeezes_factors_and_gates() -> None:
    structure = told([*conv("stem", 64, 3), *squeeze("a", 64, 16), *conv("down", 128, 64), *squeeze("b", 128, 16)])
    assert "2 modules narrow 16 times and widen again" in says(structure, Topic.JOINS)[0]
    assert says(told([*conv("stem", 64, 3), *squeeze("a", 64, 16), *squeeze("b", 64, 8)]), Topic.JOINS) == []

    def timed(path: str, twice: int) -> Named:
        return [*linear(f"{path}.mlp.1", twice * 32, 128), *conv(f"{path}.block1.proj", 32, 32)]

    factors = told([t for name in "abc" for t in timed(f"net.{name}", 2)])
    assert "3 linear layers take 128 and put out twice" in says(factors, Topic.JOINS)[0]
    assert says(told([t for name in "abc" for t in timed(f"net.{name}", 3)]), Topic.JOINS) == []

    gates = [t for name in "zrq" for t in conv(f"gru.conv{name}1", 128, 384, 1, 5)]
    assert "a state of 128 channels beside 256 that come" in says(told(gates), Topic.RECURRENT)[0]
    assert says(told([t for name in "abc" for t in conv(f"gru.conv{name}1", 128, 384, 1, 5)]), Topic.RECURRENT) == []


def test_sums_with_what_the_network_takes_and_with_what_was_put_out() -> None:
    def field(*widths: int) -> Named:
        return [t for n, inputs in enumerate(widths) for t in linear(f"pts.{n}", 256, inputs)]

    structure = told([*field(63, 256, 256, 319, 256), *linear("view", 128, 283), *linear("rgb", 3, 128)])
    (joined,) = says(structure, Topic.JOINS)
    assert joined.startswith("pts.3 319 = 256 + 63: as many as the one before puts out and what the network takes")
    assert "view takes 283, 27 more than the 256 of the one before it" in joined
    assert says(told([*field(63, 256, 256, 320, 256), *linear("rgb", 3, 256)]), Topic.JOINS) == []

    down = [*conv("a", 24, 3), *conv("b", 40, 24), *conv("c", 72, 40)]
    ups = [*conv("up1", 40, 72), *conv("mend1", 48, 80), *conv("up2", 24, 48), *conv("mend2", 3, 49)]
    assert says(told([*down, *ups]), Topic.JOINS) == []
    fits = [*conv("up1", 40, 72), *conv("mend1", 48, 80), *conv("up2", 26, 48), *conv("mend2", 3, 50)]
    assert "mend1 80 = 40 + 40, mend2 50 = 26 + 24" in says(told([*down, *fits]), Topic.JOINS)[0]


def test_blocks_that_take_twice_what_those_of_their_number_put_out() -> None:
    def up(number: int, wide: int, taken: int) -> Named:
        steps = [*conv(f"Up{number}.up.1", wide, 2 * wide), *batch_norm(f"Up{number}.up.2", wide)]
        mend = [*conv(f"Mend{number}.conv.0", wide, taken), *conv(f"Mend{number}.conv.1", wide, wide)]
        return [*steps, *mend]

    structure = told([*conv("a", 256, 1), *(t for n in (4, 3, 2) for t in up(n, 8 * 2**n, 16 * 2**n))])
    (joined,) = says(structure, Topic.JOINS)
    assert joined.startswith("Mend2 to Mend4 each take twice what Up of the same number puts out")
    assert (
        says(told([*conv("a", 256, 1), *(t for n in (4, 3, 2) for t in up(n, 8 * 2**n, 8 * 2**n))]), Topic.JOINS) == []
    )


def test_scores_and_joint_projections_of_unequal_thirds_are_not_told_as_attention() -> None:
    scores = [*bare("attn.query", 128, 256), *bare("attn.key", 128, 256), *linear("attn.v", 1, 128)]
    assert says(told([*linear("a", 256, 9), *scores]), Topic.PROJECTIONS) == []
    grouped = [*bare("attn.qkv", 768, 384), *bare("attn.o", 384, 384)]
    assert says(told([*linear("a", 384, 9), *grouped]), Topic.PROJECTIONS) == []
    joint = [*linear("attn.c_attn", 192, 64), *linear("attn.c_proj", 64, 64)]
    assert "64 to 3 x 64" in says(told([*linear("a", 64, 9), *joint]), Topic.PROJECTIONS)[0]


def test_branches_of_equal_shapes_in_a_list_see_no_half_of_each_other() -> None:
    skips = [t for n in range(4) for t in conv(f"skips.{n}", 128, 64, 1)]
    assert says(told([*conv("start", 64, 80, 1), *skips, *conv("end", 256, 128, 1)]), Topic.JOINS) == []
