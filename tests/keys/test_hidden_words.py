"""Names whose words are hidden by separators, counters or a letter too few, and those that only look so."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch

from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.placing.hidden_words import unhidden
from inspector.keys.placing.tree import Leaf
from inspector.readers import open_checkpoint


def numbered(shapes, seed=0):
    g = torch.Generator().manual_seed(seed)
    return OrderedDict((name, torch.randn(shape, generator=g)) for name, shape in shapes.items())


def report_of(folder, state, target):
    torch.save(state, folder / "net.pt")
    return diagnose(open_checkpoint(folder / "net.pt"), target)


def loaded(folder, state, target):
    """What the plan makes of the file, which must need nobody's answer."""
    report = report_of(folder, state, target)
    assert report.plan is not None and report.plan.complete, report.says
    return apply_plan(open_checkpoint(folder / "net.pt"), report.plan)


def two_attentions(word):
    made = {}
    for i in range(2):
        for name in ("self_attn", word):
            made |= {f"layers.{i}.{name}.in_proj_weight": (12, 4), f"layers.{i}.{name}.in_proj_bias": (12,)}
            made |= {f"layers.{i}.{name}.out_proj.weight": (4, 4), f"layers.{i}.{name}.out_proj.bias": (4,)}
        made |= {f"layers.{i}.norm1.weight": (4,), f"layers.{i}.norm1.bias": (4,)}
    return made


@pytest.mark.parametrize("word", ["mutihead_attn", "multihaed_attn"])
def test_a_letter_less_or_two_exchanged_inside_of_a_word_are_no_other_word(word, tmp_path, target_of):
    state = numbered(two_attentions(word))
    made = loaded(tmp_path, state, target_of(two_attentions("multihead_attn")))
    assert all(torch.equal(made[name.replace(word, "multihead_attn")], value) for name, value in state.items())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("content_attn", "context_attn"),  # another letter
        ("typical_attn", "atypical_attn"),  # another beginning
        ("encode_attn", "encoder_attn"),  # another end
        ("causal_attn", "casual_attn"),  # too short
    ],
)
def test_other_words_that_are_only_near_are_not_taken_for_each_other(one, other):
    ours, theirs = ([Leaf(n, s) for n, s in two_attentions(word).items()] for word in (one, other))
    assert unhidden(ours, theirs, ordered=True) == (None, None, "")


def test_a_word_that_is_near_two_others_is_neither():
    ours = [Leaf("mutihead_attn.weight", (4, 4))]
    theirs = [Leaf("multihead_attn.weight", (4, 4)), Leaf("muttihead_attn.weight", (4, 4))]
    assert unhidden(ours, theirs, ordered=True) == (None, None, "")


def test_letters_count_as_numbers_do(tmp_path, target_of):
    """The order of a Sequential against norm_a, conv_a, conv_b, norm_b, two of each shape."""
    names = ("bn_a", "conv_a", "act", "conv_b", "bn_b")
    shapes = {}
    for i in range(2):
        for name in names:
            norm = {"weight": (6,), "bias": (6,), "running_mean": (6,), "running_var": (6,)}
            own = {"weight": (6, 6, 3, 3)} if "conv" in name else {"weight": (6,)} if name == "act" else norm
            shapes |= {f"units.{i}.{name}.{leaf}": shape for leaf, shape in own.items()}
    truth = numbered(shapes)
    state = OrderedDict()
    for name, value in truth.items():
        for n, own in enumerate(names):
            name = name.replace(f".{own}.", f".res.{n}.")
        state[name.replace("units", "body")] = value
    made = loaded(tmp_path, state, target_of(shapes))
    assert all(torch.equal(made[name], value) for name, value in truth.items())


@pytest.mark.parametrize("ordered", [False, True])
def test_letters_against_the_order_of_the_file_or_without_one_count_nothing(ordered):
    """norm_b before norm_a: fuzzing put each in the other's place."""
    names = ("norm_b", "norm_a") if ordered else ("norm_a", "norm_b")
    ours = [Leaf(f"layer1.{i}.{name}.weight", (4,)) for i in range(2) for name in names]
    theirs = [Leaf(f"layer1.{i}.bn{n}.weight", (4,)) for i in range(2) for n in (1, 2)]
    assert unhidden(ours, theirs, ordered=ordered) == (None, None, "")


def test_two_towers_in_letters_are_asked_about(tmp_path, target_of):
    """tower_a may be the picture's or the text's."""

    def net(one, other):
        return {f"{t}.fc{n}.{leaf}": s for t in (one, other) for n in (1, 2) for leaf, s in FC.items()}

    report = report_of(tmp_path, numbered(net("tower_a", "tower_b")), target_of(net("image", "text")))
    assert report.plan is None or not report.plan.complete


FC = {"weight": (6, 6), "bias": (6,)}


def test_kerass_counters_begin_without_a_number(tmp_path, target_of):
    """dense, dense_1 are the first and the second, though another's dense1 may be a first."""
    there = {f"fc{n}.{leaf}": shape for n in (1, 2, 3) for leaf, shape in FC.items()}
    truth = numbered(there)
    names = {"fc1": "dense", "fc2": "dense_1", "fc3": "dense_2"}
    state = OrderedDict((names[n.split(".")[0]] + "." + n.split(".")[1], v) for n, v in truth.items())
    made = loaded(tmp_path, state, target_of(there))
    assert all(torch.equal(made[name], value) for name, value in truth.items())


@pytest.mark.parametrize("stem", ["fc", "lin"])
def test_another_authors_first_without_a_number_is_never_placed_last(stem, tmp_path, target_of):
    """fc, fc_1, fc_2 may count so, or fc stands behind both: fc_1 was taken for fc1 without a question."""
    there = {f"fc{n}.{leaf}": shape for n in (1, 2, 3) for leaf, shape in FC.items()}
    names = {"fc1": stem, "fc2": f"{stem}_1", "fc3": f"{stem}_2"}
    state = OrderedDict((names[n.split(".")[0]] + "." + n.split(".")[1], v) for n, v in numbered(there).items())
    report = report_of(tmp_path, state, target_of(there))
    assert report.plan is None or not report.plan.complete


def test_a_counter_with_a_gap_counts_nothing():
    ours = [Leaf(f"{name}.weight", (4, 4)) for name in ("dense", "dense_1", "dense_3")]
    assert unhidden(ours, ours, ordered=True)[2] == ""


BERT = {
    "bert.embeddings.word_embeddings.weight": (30, 8),
    "bert.embeddings.LayerNorm.weight": (8,),
    "bert.embeddings.LayerNorm.bias": (8,),
    **{f"bert.encoder.layer.{i}.attention.self.{n}.weight": (8, 8) for i in (0, 1) for n in ("query", "key", "value")},
    **{f"bert.encoder.layer.{i}.attention.self.{n}.bias": (8,) for i in (0, 1) for n in ("query", "key", "value")},
    **{f"bert.encoder.layer.{i}.intermediate.dense.weight": (16, 8) for i in (0, 1)},
    **{f"bert.encoder.layer.{i}.intermediate.dense.bias": (16,) for i in (0, 1)},
    "classifier.weight": (3, 8),
    "classifier.bias": (3,),
}


def as_tensorflow(name, value):
    name = name.replace("layer.", "layer_").replace("word_embeddings.weight", "word_embeddings")
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    name = name.replace("classifier.weight", "output_weights").replace("classifier.bias", "output_bias")
    if name.endswith("dense.weight") or (".self." in name and name.endswith("weight")):
        name, value = name.replace("weight", "kernel"), value.t().contiguous()
    return name.replace(".", "/"), value


def test_tensorflows_slashes_and_kernels_are_read_and_square_ones_are_turned(tmp_path, target_of):
    truth = numbered(BERT)
    made = loaded(tmp_path, OrderedDict(as_tensorflow(*item) for item in truth.items()), target_of(BERT))
    assert all(torch.equal(made[name], value) for name, value in truth.items())


def test_a_last_layer_that_lies_the_other_way_round_is_none_of_another_width(tmp_path, target_of):
    """16x2 beside a bias of 2 is no layer of 16 outputs: the first and the last layer were exchanged by it."""
    sizes = ((6, 16), (16, 16), (16, 16), (16, 2))
    there = {f"layers.{i}.weight": (o, n) for i, (n, o) in enumerate(sizes)}
    there |= {f"layers.{i}.bias": (o,) for i, (_, o) in enumerate(sizes)}
    truth = numbered(there)
    state = OrderedDict(
        (n.replace("layers.", "linear_").replace("weight", "w").replace("bias", "b"), v.t().contiguous())
        for n, v in truth.items()
    )
    made = loaded(tmp_path, state, target_of(there))
    assert all(torch.equal(made[name], value) for name, value in truth.items())


GPT = {
    "wte.weight": (20, 8),
    **{f"h.{i}.ln_{n}.{leaf}": (8,) for i in (0, 1) for n in (1, 2) for leaf in ("weight", "bias")},
    **{f"h.{i}.attn.{n}_proj.weight": (8, 8) for i in (0, 1) for n in ("q", "k", "v", "out")},
    **{f"h.{i}.mlp.c_fc.weight": (32, 8) for i in (0, 1)},
    **{f"h.{i}.mlp.c_proj.weight": (8, 32) for i in (0, 1)},
    "ln_f.weight": (8,),
    "ln_f.bias": (8,),
    "lm_head.weight": (20, 8),
}
RASCHKA = {
    "wte": "tok_emb",
    "h.": "trf_blocks.",
    "attn.q_proj": "att.W_query",
    "attn.k_proj": "att.W_key",
    "attn.v_proj": "att.W_value",
    "attn.out": "att.out",
    "ln_1.weight": "norm1.scale",
    "ln_1.bias": "norm1.shift",
    "ln_2.weight": "norm2.scale",
    "ln_2.bias": "norm2.shift",
    "mlp.c_fc": "ff.layers.0",
    "mlp.c_proj": "ff.layers.2",
    "ln_f.weight": "final_norm.scale",
    "ln_f.bias": "final_norm.shift",
    "lm_head": "out_head",
}


def as_raschka(name):
    for ours, theirs in RASCHKA.items():
        name = name.replace(ours, theirs)
    return name


def test_a_gpt_of_a_book_is_read_and_its_masks_are_left_out_for_their_numbers(tmp_path, target_of):
    truth = numbered(GPT)
    state = OrderedDict((as_raschka(n), v) for n, v in truth.items())
    mask = torch.triu(torch.ones(5, 5), diagonal=1)
    state |= {f"trf_blocks.{i}.att.mask": mask.clone() for i in (0, 1)}
    made = loaded(tmp_path, state, target_of(GPT))
    assert set(made) == set(truth) and all(torch.equal(made[n], v) for n, v in truth.items())
    state["trf_blocks.1.att.mask"] = torch.ones(5, 5).tril()
    report = report_of(tmp_path, state, target_of(GPT))
    with pytest.raises(KeysDoNotFit, match="is not a mask of what lies ahead"):
        apply_plan(open_checkpoint(tmp_path / "net.pt"), report.plan)


def test_the_mask_of_a_masked_layer_is_no_buffer_to_leave_out(tmp_path, target_of):
    net = {"fc1.weight": (6, 6), "fc1.bias": (6,)}
    state = numbered(net) | {"fc1.mask": torch.triu(torch.ones(6, 6), 1)}
    assert report_of(tmp_path, state, target_of(net)).plan.needs_accept == ("extra-tensors",)


@pytest.mark.parametrize("table", ["embedding_table", "embedding"])
def test_mindspores_names_prove_that_a_square_matrix_lies_as_torchs(table, tmp_path, target_of):
    norm = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
    there = {"embed.weight": (30, 12), "fc.weight": (12, 12), "fc.bias": (12,), **{f"bn.{n}": (12,) for n in norm}}
    truth = numbered(there)
    state = OrderedDict()
    for name, value in truth.items():
        module, leaf = name.split(".")
        state[f"{module}.{norm[leaf] if module == 'bn' else table if module == 'embed' else leaf}"] = value
    report = report_of(tmp_path, state, target_of(there))
    if table == "embedding":
        assert any(question.id == "transposed" for question in report.plan.ambiguities)
        return
    made = loaded(tmp_path, state, target_of(there))
    assert all(torch.equal(made[name], value) for name, value in truth.items())


@pytest.mark.parametrize("ordered", [True, False])
def test_counted_in_words(ordered):
    def shown(*names):
        found = unhidden([Leaf(f"{n}.weight", (4, 4)) for n in names], [], ordered=ordered)[0]
        return [leaf.name.removesuffix(".weight") for leaf in found] if found else None

    assert shown("conv_three", "conv_one", "conv_two") == ["conv_3", "conv_1", "conv_2"]
    assert shown("first_conv", "second_conv", "head") == ["conv_1", "conv_2", "head"]
    # With a gap, alone, or where the word is another's, nothing is counted.
    for names in (("conv_one", "conv_three"), ("conv_two", "conv_three"), ("first_conv",), ("conv_one", "norm_two")):
        assert shown(*names) is None


def test_words_that_count_are_placed_by_their_numbers_whatever_the_order(tmp_path, target_of):
    state = numbered({f"conv_{word}.weight": (8, 8, 3, 3) for word in ("three", "one", "two")})
    made = loaded(tmp_path, state, target_of({f"conv{n}.weight": (8, 8, 3, 3) for n in (1, 2, 3)}))
    assert all(torch.equal(made[f"conv{n}.weight"], state[f"conv_{w}.weight"]) for n, w in ((1, "one"), (3, "three")))


def groups(widths, at):
    made = {"stem.weight": (widths[0][0], 3, 3, 3), "head.weight": (5, widths[-1][-1])}
    number = 0
    for i, group in enumerate(widths):
        for j, width in enumerate(group):
            made[at(i, j, number) + ".conv.weight"] = (width, width, 3, 3)
            made[at(i, j, number) + ".bn.weight"] = (width,)
            number += 1
    return made


def test_layers_counted_through_their_groups_under_another_word(tmp_path, target_of):
    widths = ((8, 8), (16, 16, 16), (32,))
    nested, flat = groups(widths, lambda i, j, n: f"stages.{i}.{j}"), groups(widths, lambda i, j, n: f"layers.{n}")
    for ours, goal in ((nested, flat), (flat, nested)):
        state = numbered(ours)
        made = loaded(tmp_path, state, target_of(goal))
        assert all(torch.equal(made[b], state[a]) for a, b in zip(ours, goal, strict=True))


def test_groups_that_may_be_counted_across_are_not_read_so(tmp_path, target_of):
    """Of layers of one shape nothing tells whether the second is the group's second or the next group's first."""
    for widths in (((8, 8), (8, 8)), ((8, 8), (8,))):
        nested, flat = groups(widths, lambda i, j, n: f"stages.{i}.{j}"), groups(widths, lambda i, j, n: f"layers.{n}")
        for ours, goal in ((nested, flat), (flat, nested)):
            report = report_of(tmp_path, numbered(ours), target_of(goal))
            assert report.plan is None or not report.plan.complete


LETTERS = {
    "c1": {"weight": (8, 3, 3, 3), "bias": (8,)},
    "b1": {"weight": (8,), "bias": (8,), "running_mean": (8,), "running_var": (8,)},
    "c2": {"weight": (8, 8, 3, 3), "bias": (8,)},
    "b2": {"weight": (8,), "bias": (8,), "running_mean": (8,), "running_var": (8,)},
    "l1": {"weight": (6, 8), "bias": (6,)},
}
CALLED = {"c1": "conv1", "b1": "bn1", "c2": "conv2", "b2": "bn2", "l1": "fc1"}


def spelled(layers, names):
    return {f"{names.get(name, name)}.{own}": shape for name, held in layers.items() for own, shape in held.items()}


def test_letters_that_stand_for_the_layers_that_they_hold(file_of, target_of):
    ours, goal = spelled(LETTERS, {}), spelled(LETTERS, CALLED)
    for file, target in ((ours, goal), (goal, ours)):
        plan = diagnose(file_of(file, ordered=False), target_of(target)).plan
        assert plan.complete and not plan.needs_accept and not plan.ambiguities
        assert {s.source: s.target for s in plan.steps} == dict(zip(file, target, strict=True))


@pytest.mark.parametrize(
    "layers",
    [
        {"c1": {"weight": (8, 8)}, "b1": {"weight": (8,), "bias": (8,)}, "c2": {"weight": (8, 8)}},  # no convolution
        {"b1": {"weight": (8, 8)}, "l1": {"weight": (8, 8)}},  # b is a branch
        {f"c{n}": {"weight": (8, 8, 3, 3)} for n in (1, 2)},  # one letter is any name
        {"b1": {"weight": (8,)}, "n1": {"weight": (8,)}, "l1": {"weight": (8, 8)}},  # two letters for one kind
    ],
)
def test_other_letters_are_names(layers):
    side = [Leaf(name, shape) for name, shape in spelled(layers, {}).items()]
    assert unhidden(side, [Leaf("conv1.weight", (8, 8, 3, 3))], ordered=True) == (None, None, "")


OPENAI = {
    "norm1": ("in_layers.0", (16,)),
    "conv1": ("in_layers.2", (16, 16, 3, 3)),
    "time_emb_proj": ("emb_layers.1", (16, 12)),
    "norm2": ("out_layers.0", (16,)),
    "conv2": ("out_layers.3", (16, 16, 3, 3)),
}


def test_the_numbered_parts_of_openais_residual_blocks(file_of, target_of):
    ours = {f"input_blocks.{n}.0.{part}.weight": shape for n in range(2) for part, shape in OPENAI.values()}
    goal = {f"resnets.{n}.{name}.weight": shape for n in range(2) for name, (_, shape) in OPENAI.items()}
    plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
    assert plan.complete and not plan.needs_accept
    assert {s.source: s.target for s in plan.steps} == dict(zip(ours, goal, strict=True))


def test_a_block_without_all_its_parts_is_not_openais():
    side = [Leaf(f"a.{part}.weight", shape) for part, shape in list(OPENAI.values())[:3]]
    assert unhidden(side, [Leaf("norm1.weight", (16,))], ordered=True) == (None, None, "")
