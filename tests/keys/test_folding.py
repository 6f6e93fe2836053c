"""Names folded into patterns: nothing lost, nothing claimed that is not there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.keys.folding import fold, folded_line, search

NAMES = (
    "conv1.weight",
    *(f"layer3.{i}.conv1.{leaf}" for i in range(6) for leaf in ("weight", "bias")),
    "layer3.0.downsample.0.weight",
    "fc.weight",
    "fc.bias",
)


def _patterns(names):
    return [(f.pattern, f.count) for f in fold(names)]


def test_numbers_become_stars_and_leaves_braces():
    assert _patterns(NAMES) == [
        ("conv1.weight", 1),
        ("layer3.*.conv1.{weight,bias}", 12),
        ("layer3.0.downsample.0.weight", 1),
        ("fc.{weight,bias}", 2),
    ]


def test_a_number_that_never_varies_stays():
    assert _patterns(["a.0.b.1.w", "a.0.b.2.w"]) == [("a.0.b.*.w", 2)]
    assert _patterns(["a.0.w"]) == [("a.0.w", 1)]


def test_modules_with_other_tensors_are_another_pattern():
    norm = [f"f.{i}.{leaf}" for i in (1, 3) for leaf in ("weight", "bias", "running_mean")]
    convolution = [f"f.{i}.weight" for i in (0, 2)]
    assert _patterns([*convolution, *norm]) == [("f.*.weight", 2), ("f.*.{weight,bias,running_mean}", 6)]


def test_numbers_at_the_end_of_words_are_folded_where_there_are_many():
    assert _patterns([f"layer{n}.0.w" for n in range(1, 5)]) == [(f"layer{n}.0.w", 1) for n in range(1, 5)]
    many = [f"block{n}.{i}.w" for n in range(12) for i in range(2)]
    assert _patterns(many) == [("block*.*.w", 24)]
    # Each place by itself: four layers stay four patterns however many blocks they have.
    both = [f"layer{n}.block{i}.w" for n in (1, 2) for i in range(12)]
    assert _patterns(both) == [("layer1.block*.w", 12), ("layer2.block*.w", 12)]
    # What all share is no star.
    assert _patterns([f"conv1.block{n}.w" for n in range(12)]) == [("conv1.block*.w", 12)]


def test_lists_of_parameters_and_names_at_the_top():
    assert _patterns(["p.0", "p.1", "p.2"]) == [("p.*", 3)]
    assert _patterns(["cls_token", "pos_embed"]) == [("{cls_token,pos_embed}", 2)]
    assert _patterns(["p.7"]) == [("p.7", 1)]
    assert _patterns([]) == []


def test_many_leaves_are_counted():
    (only,) = fold([f"m.{letter}" for letter in "abcdefghij"])
    assert only.pattern == "m.{a,b,c,d,e,f,… 4 more}" and only.count == 10


def test_odd_names_survive():
    odd = ["", ".", "..", "a.", ".a", "a..b", "٣.w", "a.{x}.*", "a.*.w", "a.1.w"]
    assert sorted(n for f in fold(odd) for n in f.names) == sorted(odd)


@given(st.lists(st.text(alphabet="ab01.*{", max_size=9), unique=True, max_size=40))
def test_every_name_is_in_exactly_one_pattern(names):
    assert sorted(n for f in fold(names) for n in f.names) == sorted(names)


def test_searching_asks_for_every_word_and_understands_stars():
    assert search(NAMES, "conv1 BIAS") == tuple(f"layer3.{i}.conv1.bias" for i in range(6))
    assert search(NAMES, "layer3.*.downsample") == ("layer3.0.downsample.0.weight",)
    assert search(NAMES, "weight*layer3") == ()
    assert search(NAMES, "") == NAMES
    assert search(NAMES, "*") == NAMES


def test_a_line_of_patterns():
    assert folded_line(NAMES, 2) == "conv1.weight, layer3.*.conv1.{weight,bias} (12) and 3 more"
    assert folded_line(["a"], 4) == "a"


def test_three_thousand_keys_of_a_transformer_are_a_few_patterns():
    leaves = ("q.weight", "k.weight", "v.weight", "norm.weight", "norm.bias", "up.weight", "down.weight")
    names = [f"layers.{i}.{leaf}" for i in range(430) for leaf in leaves]
    assert len(names) > 3000
    assert [f.pattern for f in fold(names)] == [
        "layers.*.q.weight",
        "layers.*.k.weight",
        "layers.*.v.weight",
        "layers.*.norm.{weight,bias}",
        "layers.*.up.weight",
        "layers.*.down.weight",
    ]
