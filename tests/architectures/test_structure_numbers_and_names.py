"""Gates, numbers in words, multiples and kinds by name: each beside what must stay unsaid."""

from __future__ import annotations

import itertools

import pytest

from inspector.architectures.structure.types import Topic
from tests.architectures.test_structure_call_order import up
from tests.architectures.test_structure_stranger import Named, bare, batch_norm, conv, linear, says, told


def gated(factor: int) -> Named:
    """Each puts out so many times what the next takes."""
    widths = (6, 10, 18, 34)
    return [
        tensor
        for n, (a, b) in enumerate(itertools.pairwise(widths))
        for tensor in [*conv(f"down.{n}.0", b, a, 8), *conv(f"down.{n}.2", factor * b, b, 1)]
    ]


def test_blocks_that_take_half_of_what_came_before_stand_behind_a_gate_or_in_groups() -> None:
    (text,) = says(told(gated(2)), Topic.JOINS)
    assert text.startswith("down.0 to down.2: each sees half of what the one before puts out (10 of 20, 18 of 36)")
    assert "in two groups, or after a gate" in text
    assert says(told(gated(1)), Topic.JOINS) == []
    # Which of a block's layers is the last sorted names do not say.
    assert says(told(gated(2), ordered=False), Topic.JOINS) == []


def test_a_transposed_convolution_takes_half_behind_a_gate_alone() -> None:
    def decoder(factor: int) -> Named:
        rows = enumerate([(34, 18), (18, 10), (10, 6)])
        return [
            tensor
            for n, (a, b) in rows
            for tensor in [*conv(f"rise.{n}.0", factor * a, a, 3), *up(f"rise.{n}.2", a, b, 8)]
        ]

    (text,) = [text for text in says(told(decoder(2)), Topic.JOINS) if "gate" in text]
    assert text.startswith("In each of rise.0 to rise.2 a transposed convolution takes half")
    assert not any("gate" in text for text in says(told(decoder(1)), Topic.JOINS))


def test_what_points_take_is_no_picture_and_is_joined_again() -> None:
    def clouds(kernel: int) -> Named:
        rows = [(3, 24), (24, 24), (24, 40), (43, 40), (40, 40), (40, 72), (75, 72), (72, 72), (72, 80)]
        layers = [conv(f"sa{n // 3}.{n % 3}", b, a, kernel, kernel) for n, (a, b) in enumerate(rows)]
        return [tensor for layer in layers for tensor in layer]

    points = told([*clouds(1), *linear("fc", 11, 80)])
    assert says(points, Topic.TAKES) == ["sa0.0 takes three channels."]
    (joined,) = [text for text in says(points, Topic.JOINS) if "43 = 40 + 3" in text]
    assert "what the network takes joined" in joined
    assert says(told([*clouds(3), *linear("fc", 11, 80)]), Topic.TAKES) == ["sa0.0 takes three channels (as RGB has)."]


def test_what_an_earlier_layer_puts_out_is_called_so() -> None:
    rows = [(5, 24), (24, 40), (64, 40), (40, 24), (64, 8)]
    structure = told([tensor for n, (a, b) in enumerate(rows) for tensor in conv(f"c{n}.x", b, a)])
    assert not any("what the network takes" in text for text in says(structure, Topic.JOINS))


WORDS = ("One", "Two", "Thr", "Fou")


def words(names: tuple[str, ...]) -> Named:
    widths = (3, 16, 24, 40, 56)
    return [
        tensor
        for name, a, b in zip(names, widths, widths[1:], strict=False)
        for tensor in [*conv(f"pyramid.net{name}.0", b, a), *conv(f"pyramid.net{name}.2", b, b)]
    ]


@pytest.mark.parametrize("ordered", [True, False])
def test_stages_numbered_in_words_are_told_in_their_order(*, ordered: bool) -> None:
    named = words(WORDS) if ordered else sorted(words(WORDS))
    found = [text for text in says(told(named, ordered=ordered), Topic.REPEATS) if "in words" in text]
    assert found == [
        "pyramid.netOne to pyramid.netFou are 4 stages of 2 3x3 convolutions each, numbered in words: 3-16-24-40-56 "
        "from stage to stage."
    ]
    # A number that is missing, and words that are none.
    for names in (("One", "Two", "Fou", "Fiv"), ("In", "Mid", "Out", "End")):
        assert not any("in words" in text for text in says(told(words(names)), Topic.REPEATS))


def dense(parent: str, first: int, growth: tuple[int, ...], *, more: int = 0) -> Named:
    found: Named = []
    for name, width in zip(("One", "Two", "Three", "Four", "Five"), growth, strict=True):
        found += conv(f"{parent}.conv{name}", width, first)
        first += width + more
    return found


def test_layers_that_take_all_before_them_are_a_dense_block() -> None:
    growth = (20, 20, 12, 8, 2)
    (text,) = [text for text in says(told(dense("flow", 77, growth)), Topic.JOINS) if "dense" in text]
    assert "the layers convOne to convFive put out 20-20-12-8-2" in text and "the first one takes 77" in text
    assert "correlation" not in text
    assert not any("dense" in text for text in says(told(dense("flow", 77, growth, more=1)), Topic.JOINS))


@pytest.mark.parametrize(("least", "said"), [(49, True), (51, False), (36, False)])
def test_a_correlation_is_said_of_an_odd_square_that_all_others_have_in_them(least: int, *, said: bool) -> None:
    growth = (20, 20, 12, 8, 2)
    takes = [least, *(least + width + 4 for width in (16, 24, 40))]
    blocks = [tensor for n, width in enumerate(takes) for tensor in dense(f"level{'abcd'[n]}", width, growth)]
    (text,) = [t for t in says(told([*words(WORDS), *blocks]), Topic.JOINS) if "dense block" in t]
    assert (f"{least} = 7 x 7" in text) is said
    assert ("69 = 49 + 16 + 4" in text) is said


def proposals(scores: int, boxes: int, name: str = "rpn_head.rpn") -> Named:
    body = [*conv("a", 24, 3), *conv("b", 40, 24)]
    return [*body, *conv(f"{name}.cls", scores, 40, 1, 1), *conv(f"{name}.loc", boxes, 40, 1, 1)]


def test_scores_and_boxes_of_as_many_anchors() -> None:
    (text,) = [text for text in says(told(proposals(14, 28)), Topic.KIND) if "anchors" in text]
    assert "14 = 2 x 7" in text and "28 = 4 x 7" in text
    for other in (proposals(14, 30), proposals(15, 28), proposals(14, 28, "head")):
        assert not any("anchors" in text for text in says(told(other), Topic.KIND))


def field(density: str, colours: int) -> Named:
    body = [*linear("x.0", 40, 33), *linear("x.1", 40, 40)]
    return [*body, *linear(density, 1, 40), *linear("rgb_linear", colours, 40)]


def test_one_density_and_three_colours_are_a_radiance_field() -> None:
    assert any("radiance field" in text for text in says(told(field("alpha_linear", 3)), Topic.KIND))
    for other in (field("alpha_linear", 4), field("value", 3), [*field("alpha_linear", 3), *batch_norm("n", 40)]):
        assert not any("radiance" in text for text in says(told(other), Topic.KIND))


def patches(kernel: int) -> Named:
    return [*conv("patch", 72, 5, kernel, kernel), *linear("mlp", 72, 72), *bare("head", 80, 72)]


def test_a_head_that_puts_out_the_numbers_of_a_patch() -> None:
    (text,) = [text for text in says(told(patches(4)), Topic.JOINS) if "patch" in text]
    assert text.startswith("head puts out 80 = 5 x 4 x 4: as many as patch takes of 5 channels")
    assert not any("comes out again" in text for text in says(told(patches(3)), Topic.JOINS))


def statistics(kind: str) -> Named:
    body = [*conv("a", 48, 20, 5), *conv("b", 56, 48, 1)]
    behind = conv("att", 24, 168, 1) if kind == "convolution" else linear("att", 24, 168)
    return [*body, *behind, *linear("fc", 9, 24)]


def test_three_times_what_the_convolution_before_puts_out_is_joined() -> None:
    (text,) = [text for text in says(told(statistics("convolution")), Topic.JOINS) if "3 x 56" in text]
    assert "3 times what b before it puts out, likely joined" in text
    # A linear layer may take three places of a map.
    assert not any("3 x 56" in text for text in says(told(statistics("linear")), Topic.JOINS))


def test_two_branches_on_one_width_and_a_sum_of_two_are_no_multiple() -> None:
    branches = [*conv("b.0", 24, 96, 1), *conv("b.1", 40, 96, 1), *linear("fc", 9, 40)]
    assert not any("4 x 24" in text for text in says(told([*conv("a", 72, 20, 5), *branches]), Topic.JOINS))
    # 168 = 3 x 56 = 120 + 48.
    two = [*conv("a", 48, 20, 5), *conv("s", 120, 48, 1), *conv("b", 56, 120, 1), *conv("att", 24, 168, 1)]
    assert not any("3 x 56" in text for text in says(told(two), Topic.JOINS))


def spectrum(bands: int) -> Named:
    return [("mel_scale.fb", (257, bands)), *conv("front", 48, 40, 5), *linear("fc", 9, 48)]


def test_the_first_layer_takes_the_bands_of_the_bank_before_it() -> None:
    (text,) = says(told(spectrum(40)), Topic.FED)
    assert text == "front takes 40 channels, as many as mel_scale.fb has filters: the bands of a spectrum."
    assert says(told(spectrum(44)), Topic.FED) == []


def test_an_encoder_and_a_decoder_by_their_names() -> None:
    def blocks(name: str) -> Named:
        return [t for n in range(2) for t in [*linear(f"{name}.{n}.up", 96, 24), *linear(f"{name}.{n}.down", 24, 96)]]

    found = says(told([*blocks("encoder_layers"), *blocks("decoder_layers")]), Topic.KIND)
    assert "An encoder and a decoder by their names: 2 blocks encoder_layers.0 to encoder_layers.1, and 2 " in " ".join(
        found
    )
    other = says(told([*blocks("encoder_layers"), *blocks("decorator")]), Topic.KIND)
    assert not any("decoder" in text for text in other)


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_blocks_whose_numbers_begin_with_zeros_are_told_by_their_own_names(digits: int) -> None:
    """Such a file did not open."""
    names = [f"layer.{n:0{digits}}" for n in range(12)]
    claims = told([tensor for one in names for tensor in [*linear(f"{one}.up", 32, 8), *linear(f"{one}.down", 8, 32)]])
    rows = [f"{names[0]} to {names[11]} are 12 equal blocks"]
    if digits > 1:
        rows = [f"{names[0]} to {names[9]} are 10 equal blocks", f"{names[10]} to {names[11]} are 2 equal blocks"]
    for row in rows:
        assert any(claim.says.startswith(row) for claim in claims.claims), [claim.says for claim in claims.claims]
