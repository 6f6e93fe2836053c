"""What a stranger found taken for one thing in silence: other parts, other quantities, other counts. All are asked."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.diagnose import diagnose
from inspector.keys.placing.contradictions import are_siblings_at_the_top
from inspector.keys.report import Evidence
from inspector.readers import open_checkpoint

TRUNK = {"trunk.fc.weight": (8, 5), "trunk.fc.bias": (8,), "trunk.fc2.weight": (8, 8), "trunk.fc2.bias": (8,)}
MLP = {"0.weight": (8, 8), "0.bias": (8,), "2.weight": (8, 8), "2.bias": (8,)}
ATTENTION = {"in_proj_weight": (24, 8), "in_proj_bias": (24,), "out_proj.weight": (8, 8), "out_proj.bias": (8,)}
NORM = {"weight": (8,), "bias": (8,)}


def under(name, shapes):
    return {f"{name}.{own}": shape for own, shape in shapes.items()}


def net(parts, *, trunk=True):
    made = dict(TRUNK) if trunk else {}
    for name, shapes in parts.items():
        made |= under(name, shapes)
    return made


def asks(report):
    plan = report.plan
    return plan is None or bool(plan.ambiguities or plan.needs_accept) or not plan.complete


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("policy", "value"),
        ("reward", "value"),
        ("positive", "negative"),
        ("low", "high"),
        ("real", "imag"),
        ("shared", "private"),
        ("projector", "predictor"),
        ("lm_head", "cls_head"),
        ("rotation_head", "classifier"),
        ("aux_head", "head"),
        ("domain_classifier", "classifier"),
    ],
)
def test_what_is_left_over_under_another_word_is_asked_about(ours, theirs, file_of, target_of):
    file, goal = file_of(net({ours: MLP})), target_of(net({theirs: MLP}))
    assert asks(diagnose(file, goal))


def test_the_question_about_what_is_left_over_can_be_answered(file_of, target_of):
    file, goal = file_of(net({"policy": MLP}), ordered=False), target_of(net({"value": MLP}))
    (question,) = diagnose(file, goal).plan.ambiguities
    assert '"policy"' in question.question and '"value"' in question.question
    plan = diagnose(file, goal, choose={question.id: "same"}).plan
    assert plan.complete and dict(plan.certificate)[Evidence.CHOSEN] == len(MLP)
    assert not diagnose(file, goal, choose={question.id: "leave-out"}).plan.complete


@pytest.mark.parametrize("part", [MLP, ATTENTION], ids=["mlp", "attention"])
def test_an_exact_name_that_may_be_another_part_settles_nothing_for_the_rest(part, file_of, target_of):
    file = file_of(net({"head": part, "tail": part}))
    assert asks(diagnose(file, target_of(net({"stem": part, "head": part}))))


def test_a_row_that_begins_without_a_number_is_counted_otherwise(file_of, target_of):
    file = file_of(net({"norm": NORM, "norm1": NORM}))
    assert asks(diagnose(file, target_of(net({"norm1": NORM, "norm2": NORM}))))


@pytest.mark.parametrize("name", ["fc2_grad", "grad_fc2", "fc2_mask", "fc2_delta", "fc2_fisher", "fc2_rho"])
def test_another_quantity_of_a_layer_is_not_the_layer(name, file_of, target_of):
    fc = {"fc.weight": (8, 5), "fc.bias": (8,)}
    layer = {"weight": (8, 8), "bias": (8,)}
    assert asks(diagnose(file_of(fc | under(name, layer)), target_of(fc | under("fc2", layer))))


@pytest.mark.parametrize("name", ["std", "sq_mean", "mean_sq"])
def test_a_file_of_statistics_is_no_file_of_weights(name, tmp_path, target_of):
    torch.save({key: torch.ones(shape) for key, shape in under(name, TRUNK).items()}, tmp_path / "a.pth")
    report = diagnose(open_checkpoint(tmp_path / "a.pth"), target_of(TRUNK))
    assert report.plan is None and "numbers about the weights" in report.refusal


BLOCK = {"mlp_norm": NORM, "mlp": MLP, "attn_norm": NORM, "attn": ATTENTION}
NUMBERED = dict(zip(BLOCK, ("norm1", "mlp", "norm2", "attn"), strict=True))


def test_norms_are_numbered_as_they_are_defined_and_not_by_convention(file_of, target_of):
    """In a block that begins with its MLP norm1 is the MLP's."""
    ours = net({f"layers.{n}.{name}": BLOCK[name] for n in range(2) for name in BLOCK}, trunk=False)
    goal = net({f"blocks.{n}.{NUMBERED[name]}": BLOCK[name] for n in range(2) for name in BLOCK}, trunk=False)
    assert asks(diagnose(file_of(ours), target_of(goal)))
    # By convention where both are in its order.
    usual = ("attn_norm", "attn", "mlp_norm", "mlp")
    ours = net({f"layers.{n}.{name}": BLOCK[name] for n in range(2) for name in usual}, trunk=False)
    names = dict(zip(usual, ("norm1", "attn", "norm2", "mlp"), strict=True))
    goal = net({f"blocks.{n}.{names[name]}": BLOCK[name] for n in range(2) for name in usual}, trunk=False)
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and {s.source: s.target for s in plan.steps} == dict(zip(ours, goal, strict=True))


def test_cross_attention_first_is_not_read_as_self_attention_first(file_of, target_of):
    ours = net({"cross_attn": ATTENTION, "self_attn": ATTENTION})
    assert asks(diagnose(file_of(ours), target_of(net({"attn1": ATTENTION, "attn2": ATTENTION}))))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("layers.{a}.{b}", "heads.{b}.layers.{a}"),
        ("levels.{a}.{b}", "heads.{b}.{a}"),
        ("stages.{a}.{b}", "branches.{b}.layers.{a}"),
        ("blocks.{a}.{b}", "towers.{b}.layers.{a}"),
    ],
)
@pytest.mark.parametrize("count", [2, 3])
def test_a_square_of_two_counts_under_other_words_is_asked_about(ours, theirs, count, file_of, target_of):
    layer = {"weight": (8, 8), "bias": (8,)}
    places = [(a, b) for a in range(count) for b in range(count)]
    file = net({ours.format(a=a, b=b): layer for a, b in places}, trunk=False)
    goal = net({theirs.format(a=a, b=b): layer for b, a in places}, trunk=False)
    assert asks(diagnose(file_of(file), target_of(goal)))


def test_a_language_models_head_is_the_head_and_another_tasks_is_not():
    def siblings(one, other):
        return are_siblings_at_the_top((one,), (other,))

    assert not siblings("lm_head", "head") and not siblings("head", "lm_head")
    assert siblings("rotation_head", "head") and siblings("lm_head", "cls_head")


BEFORE = ("d_", "m_", "v_", "grad_", "exp_avg_", "old_", "best_", "ema_", "shadow_", "target_", "teacher_")
BEHIND = ("_sq", "_sqrt", "_momentum", "_var", "_mean", "_grad", "_old", "_prev", "_copy", "_avg", "_ema", "_orig")


@pytest.mark.parametrize("base", ["fc2", "conv3", "proj"])
@pytest.mark.parametrize("name", [*(f"{x}{{}}" for x in BEFORE), *(f"{{}}{x}" for x in (*BEHIND, "_backup", "_init"))])
def test_what_is_called_after_a_layer_is_not_that_layer(name, base, file_of, target_of):
    fc = {"fc.weight": (8, 5), "fc.bias": (8,)}
    layer = {"weight": (8, 8), "bias": (8,)}
    assert asks(diagnose(file_of(fc | under(name.format(base), layer)), target_of(fc | under(base, layer))))


@pytest.mark.parametrize("name", ["conv2d_{}", "my_conv{}", "the_conv{}"])
def test_a_layer_with_a_word_that_says_nothing_is_that_layer(name, file_of, target_of):
    ours = net({name.format(n): {"weight": (n + 2, n + 1, 3, 3), "bias": (n + 2,)} for n in (1, 2, 3)})
    goal = net({f"conv{n}": {"weight": (n + 2, n + 1, 3, 3), "bias": (n + 2,)} for n in (1, 2, 3)})
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and {s.source: s.target for s in plan.steps} == dict(zip(ours, goal, strict=True))


@pytest.mark.parametrize("inner", ["{}", "{}.0"])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_that_shapes_turn_round_turn_what_is_counted_with_them(inner, turned, file_of, target_of):
    """detectron2's FPN counted from the other end: its outputs are of one shape, and follow its laterals."""
    widths = (16, 24, 32, 40)
    body = {n: under("conv1", {"weight": (c, 3, 3, 3), "bias": (c,)}) for n, c in enumerate(widths)}
    body = {n: body[n] | under("conv2", {"weight": (c, c, 3, 3), "bias": (c,)}) for n, c in enumerate(widths)}
    lateral = {n: {"weight": (8, c, 1, 1), "bias": (8,)} for n, c in enumerate(widths)}
    out = {"weight": (8, 8, 3, 3), "bias": (8,)}
    ours = {f"body.layer{n}.0": body[n] for n in body} | {f"fpn.fpn_lateral{n + 2}": lateral[n] for n in lateral}
    ours |= {f"fpn.fpn_output{n + 2}": out for n in range(4)}
    goal = {f"body.layer{n}.0": body[n] for n in body}
    goal |= {f"fpn.inner_blocks.{inner.format(n)}": lateral[3 - n if turned else n] for n in range(4)}
    goal |= {f"fpn.layer_blocks.{inner.format(n)}": out for n in range(4)}
    file, target = file_of(net(ours, trunk=False)), target_of(net(goal, trunk=False))
    assert asks(diagnose(file, target)) is turned


ABOUT = ("grads", "hessian_diag", "nu", "noise", "mask", "momentum", "fisher", "opt_state", "lora_A")


@pytest.mark.parametrize("way", ["{}.{}", "{}/{}", "optimizer/{}/{}"])
@pytest.mark.parametrize("about", ABOUT)
def test_numbers_about_weights_are_no_weights(about, way, file_of, target_of):
    goal = net({f"fc{n}": {"weight": (n + 3, n + 2), "bias": (n + 3,)} for n in (1, 2, 3)}, trunk=False)
    names = {way.format(about, n.replace(".", "/") if "/" in way else n): shape for n, shape in goal.items()}
    report = diagnose(file_of(names), target_of(goal))
    assert report.plan is None or not report.plan.complete or asks(report)


@pytest.mark.parametrize("way", ["{}.{}", "{}/{}", "model/{}/{}", "{}_{}"])
@pytest.mark.parametrize(
    ("one", "other"),
    [("encoder", "decoder"), ("policy", "value"), ("generator", "discriminator"), ("critic1", "critic2"), ("en", "de")],
)
def test_one_part_is_not_put_where_the_target_has_another(one, other, way, file_of, target_of):
    parts = {f"fc{n}": {"weight": (n + 3, n + 2), "bias": (n + 3,)} for n in (1, 2, 3)}
    inner = net(parts, trunk=False)
    odd = "/" if "/" in way else "_" if way == "{}_{}" else "."
    file = {way.format(one, name.replace(".", odd)): shape for name, shape in inner.items()}
    report = diagnose(file_of(file), target_of({f"{other}.{name}": shape for name, shape in inner.items()}))
    assert report.plan is None or not report.plan.complete or asks(report)


@pytest.mark.parametrize(("one", "other"), [("net", "model"), ("encoder", "backbone"), ("bert", "roberta")])
def test_a_whole_network_under_another_name_is_that_network(one, other, file_of, target_of):
    inner = net({f"fc{n}": {"weight": (n + 3, n + 2), "bias": (n + 3,)} for n in (1, 2, 3)}, trunk=False)
    file, goal = ({f"{root}.{name}": shape for name, shape in inner.items()} for root in (one, other))
    report = diagnose(file_of(file), target_of(goal))
    assert report.plan.complete and not asks(report)


@pytest.mark.parametrize(("first", "reads"), [(0, True), (1, True), (7, False)])
def test_blocks_of_a_deeper_network_are_not_read_under_underscores(first, reads, file_of, target_of):
    parts = {"att.key": (6, 6), "att.value": (6, 6), "ffn.key": (12, 6), "ffn.value": (6, 12)}
    goal = {f"blocks.{i}.{part}.weight": shape for i in range(3) for part, shape in parts.items()}
    goal |= {"emb.weight": (20, 6), "head.weight": (20, 6)}
    ours = {f"blocks_{i + first}_{p.replace('.', '_')}_weight": s for i in range(3) for p, s in parts.items()}
    ours |= {"emb_weight": (20, 6), "head_weight": (20, 6)}
    plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
    assert (plan is not None and plan.complete) is reads


@pytest.mark.parametrize("name", ["{}_exp_avg", "{}.grad", "grad_{}", "{}_delta", "{}_mask"])
def test_numbers_about_weights_say_so_in_the_tensors_own_names(name, tmp_path, target_of):
    shapes = {f"fc{n}.{own}": s for n in (1, 2) for own, s in (("weight", (8, 8)), ("bias", (8,)))}
    state = {}
    for key, shape in shapes.items():
        module, _, own = key.partition(".")
        state[f"{module}.{name.format(own)}"] = torch.randn(shape)
    torch.save(state, tmp_path / "a.pth")
    report = diagnose(open_checkpoint(tmp_path / "a.pth"), target_of(shapes))
    assert report.plan is None and "numbers about the weights" in report.refusal
