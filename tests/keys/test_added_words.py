"""A word that a name has and its place has not: asked about, unless it says nothing of a part."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

GOAL = {
    f"{part}.layers.{n}.fc{i}.{own}": shape
    for part in ("encoder", "decoder")
    for n in range(3)
    for i in (1, 2)
    for own, shape in (("weight", (8, 8)), ("bias", (8,)))
} | {"head.weight": (5, 8), "head.bias": (5,)}
TWO = {f"blocks.{n}.{end}": (8, 8) for n in range(3) for end in ("row_attn.q.weight", "col_attn.q.weight")}


def asked(report):
    return [question.id for question in report.plan.ambiguities] if report.plan is not None else []


def renamed(*pairs, goal=None):
    names = dict(goal or GOAL)
    for before, after in pairs:
        names = {name.replace(before, after): shape for name, shape in names.items()}
    return names


def settled(names, target, file_of):
    """The ids asked of a file of these names, and the report after yes to each."""
    questions = diagnose(file_of(names), target).plan.ambiguities
    yes = {question.id: question.options[0][0] for question in questions}
    return list(yes), diagnose(file_of(names), target, choose=yes)


@pytest.mark.parametrize(
    "after",
    (
        "decoder_discarded.",
        "decoderBackward.",
        "unused.decoder.",
        "decoder.adapter.",
        "negative_decoder.",
        "stale.decoder.",
    ),
)
def test_a_part_with_a_word_more_is_asked_about_once(after, file_of, target_of):
    ids, yes = settled(renamed(("decoder.", after)), target_of(GOAL), file_of)
    assert len(ids) == 1 and asked(yes) == [] and yes.plan.complete


@pytest.mark.parametrize("word", ("reversed", "from_end", "from_top", "descending", "last_to_first", "rev_order"))
@pytest.mark.parametrize("form", ("{}_{}", "{}.{}"))
def test_layers_that_are_counted_from_the_other_end_are_asked_about(word, form, file_of, target_of):
    report = diagnose(file_of(renamed((".layers", "." + form.format("layers", word)))), target_of(GOAL))
    assert asked(report) and not report.plan.complete


def test_the_word_is_seen_behind_other_separators_and_letters(file_of, target_of):
    for names in (
        {name.replace(".", "/"): shape for name, shape in renamed(("decoder", "decoder_obsolete")).items()},
        renamed(("decoder", "obsoleteDecoder"), ("encoder.", "net.encoder."), ("layers", "blocks")),
    ):
        assert asked(diagnose(file_of(names), target_of(GOAL)))


@pytest.mark.parametrize("word", ("fold", "student", "english", "run_a"))
def test_a_part_of_another_network_is_asked_about(word, file_of, target_of):
    names = {f"net/{word if 'decoder' in name else 'other'}/{name.replace('.', '/')}": s for name, s in GOAL.items()}
    report = diagnose(file_of(names), target_of(GOAL))
    assert asked(report) and not report.plan.complete


@pytest.mark.parametrize(
    "pairs",
    (
        [("encoder", "bert.encoder"), ("decoder", "bert.decoder")],
        [("layers.", "layers_list."), ("fc", "linear_layer")],
        [("encoder.", "my_encoder."), ("decoder.", "my_decoder.")],
        [("fc1", "fc_one"), ("fc2", "fc_two")],
        [("encoder.", "model.encoder_module."), ("decoder.", "model.decoder_module."), ("head.", "model.head.")],
    ),
)
def test_words_that_say_nothing_of_a_part_are_no_doubt(pairs, file_of, target_of):
    report = diagnose(file_of(renamed(*pairs)), target_of(GOAL))
    assert asked(report) == [] and report.plan.complete


@pytest.mark.parametrize("word", ("time_attn", "depth_attn", "attn_diagonal"))
def test_a_word_in_anothers_place_is_seen_above_equal_ends(word, file_of, target_of):
    assert asked(diagnose(file_of(renamed(("row_attn", word), goal=TWO)), target_of(TWO)))


def test_a_layer_whose_part_is_called_otherwise_than_in_the_others_is_asked_about(file_of, target_of):
    goal = {
        f"{part}.blocks.{n}.ln.{own}": (8,) for part in ("visual", "text") for n in (0, 1) for own in ("weight", "bias")
    }
    names = renamed(("visual.blocks.1", "decoder_blocks.1"), goal=goal)
    assert asked(diagnose(file_of(names), target_of(goal)))


CONVS = {f"convs.{i}.{part}.weight": (6, 6) for i in range(3) for part in ("lin_l", "lin_r")} | {"out.weight": (4, 6)}


@pytest.mark.parametrize(
    "name",
    ["best_minus_last.{}", "net.weight_diff.{}", "convs.from_end_{}", "synaptic_importance.{}", "convsReversed.{}"],
)
def test_differences_and_the_other_end_are_asked_about_wherever_they_stand(name, file_of, target_of):
    if name.startswith("convs"):
        ours = {
            n.replace("convs.", name.format("") if "end" in name else "convsReversed.", 1): s for n, s in CONVS.items()
        }
    else:
        ours = {name.format(n): s for n, s in CONVS.items()}
    assert ours.keys() != CONVS.keys()
    plan = diagnose(file_of(ours), target_of(CONVS)).plan
    assert plan is None or not plan.complete


def test_another_part_around_all_names_is_asked_about(file_of, target_of):
    goal = {n: s for n, s in CONVS.items() if n.startswith("convs")}
    for word, asked in (("auxiliary", True), ("layers", False)):
        plan = diagnose(file_of({n.replace("convs", word): s for n, s in goal.items()}), target_of(goal)).plan
        assert (plan is None or not plan.complete) is asked


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("logvar_mu", "mu_logvar"),
        ("vk_proj", "kv_proj"),
        ("gate_shift_scale", "shift_scale_gate"),
        ("y_x", "x_y"),
        ("zx_proj", "xz_proj"),
        ("forgetInput", "input_forget"),
    ],
)
@pytest.mark.parametrize("separator", [".", "_", "/"])
def test_parts_of_one_tensor_in_another_order_are_asked_about(ours, theirs, separator, file_of, target_of):
    shapes = {
        "in.fc1.weight": (8, 6),
        "in.fc2.weight": (8, 8),
        f"mid.{theirs}.weight": (24, 8),
        "out.fc.weight": (3, 24),
    }
    file = {n.replace(theirs, ours).replace(".", separator): s for n, s in shapes.items()}
    plan = diagnose(file_of(file), target_of(shapes)).plan
    assert plan is None or not plan.complete
    same = diagnose(file_of({n.replace(".", separator): s for n, s in shapes.items()}), target_of(shapes)).plan
    assert same is not None and same.complete


def test_a_scope_before_all_variables_that_says_a_difference_is_not_taken_off(file_of, target_of):
    for scope, reads in (("net", True), ("best_minus_last", False)):
        ours = {f"{scope}/{n.replace('.', '/').replace('weight', 'kernel:0')}": s for n, s in CONVS.items()}
        plan = diagnose(file_of(ours), target_of(CONVS)).plan
        assert (plan is not None and plan.complete) is reads


@pytest.mark.parametrize("name", ["final_norm", "ln_final", "norm_f"])
def test_the_last_norm_may_be_called_a_norm_alone(name, file_of, target_of):
    def net(last, block):
        shapes = {block.format(i, n): s for i in range(2) for n, s in (("fc1", (12, 8)), ("fc2", (8, 12)))}
        return shapes | {f"{last}.weight": (8,), f"{last}.bias": (8,), "head.weight": (3, 8)}

    goal = net("norm", "blocks.{}.mlp.{}.weight")
    plan = diagnose(file_of(net(name, "blocks.{}.mlp.{}.weight")), target_of(goal)).plan
    assert plan.complete and not plan.ambiguities
    # What it says of another time or hand is asked about as before.
    for other in ("norm_old", "ema_norm", "unused_norm"):
        report = diagnose(file_of(net(other, "blocks.{}.mlp.{}.weight")), target_of(goal))
        assert report.plan is None or report.plan.ambiguities or not report.plan.complete, other


def test_a_roles_name_of_two_levels_says_no_more_than_the_targets(file_of, target_of):
    """vit.embeddings.patch_embeddings.projection of transformers is conv_proj of torchvision."""
    block = {f"{n}.{last}": s for n in ("q", "k") for last, s in (("weight", (8, 8)), ("bias", (8,)))}
    head = {"weight": (5, 8), "bias": (5,)}
    kernel = {"weight": (8, 3, 4, 4), "bias": (8,)}
    ours = {f"vit.embeddings.patch_embeddings.projection.{n}": s for n, s in kernel.items()}
    ours |= {f"vit.layers.{i}.{n}": s for i in (0, 1) for n, s in block.items()}
    goal = {f"conv_proj.{n}": s for n, s in kernel.items()}
    goal |= {f"encoder.layers.encoder_layer_{i}.{n}": s for i in (0, 1) for n, s in block.items()}
    ours |= {f"classifier.{n}": s for n, s in head.items()}
    goal |= {f"heads.head.{n}": s for n, s in head.items()}
    report = diagnose(file_of(ours), target_of(goal))
    assert "added-word" not in [question.id.partition(":")[0] for question in report.plan.ambiguities]
