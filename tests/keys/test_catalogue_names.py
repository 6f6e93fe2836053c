"""Classes 28 to 54 of the catalogue: buffers on one side only, and renamed leaves and layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inspector.keys.diagnose import diagnose


@pytest.fixture
def ids():
    return lambda report: {f.id for f in report.findings}


@pytest.fixture
def repaired(file_of, target_of, placed_as):
    """Diagnose, and check the truth: {name in the target: name in the file}."""

    def check(ours, goal, truth=None, accept=(), choose=None, ordered=False):
        report = diagnose(file_of(ours, ordered=ordered), target_of(goal), accept=accept, choose=choose)
        assert report.plan is not None and report.plan.complete, report.says
        assert placed_as(report) == (truth if truth is not None else {n: n for n in goal})
        return report

    return check


def without(shapes, *ends):
    return {n: s for n, s in shapes.items() if not n.endswith(ends)}


def test_class_28_batch_counters(repaired, tiny_cnn, ids):
    bare = without(tiny_cnn, "num_batches_tracked")
    assert ids(repaired(tiny_cnn, bare)) == {"bookkeeping-buffers"}
    assert ids(repaired(bare, tiny_cnn, {n: n for n in bare})) == {"bookkeeping-buffers"}


def test_class_28_batch_counters_as_floats_are_told(saved, target_of, tiny_cnn, ids):
    state = {n: torch.ones(s, dtype=torch.float16) for n, s in tiny_cnn.items()}
    goal = target_of(tiny_cnn)
    kinds = ("int64", "float32")
    tensors = tuple(replace(t, dtype=kinds[not t.name.endswith("tracked")]) for t in goal.tensors)
    report = diagnose(saved(state), replace(goal, tensors=tensors))
    assert "counter-dtype" in ids(report)
    whole = {n: t.to(torch.int64) if n.endswith("tracked") else t for n, t in state.items()}
    assert "counter-dtype" not in ids(diagnose(saved(whole), replace(goal, tensors=tensors)))


def test_class_29_flop_counters(repaired, tiny_cnn):
    extra = {"total_ops": (1,), "conv1.total_params": (1,), "fc.total_ops": (1,)}
    repaired(tiny_cnn | extra, tiny_cnn)
    repaired(tiny_cnn, tiny_cnn | extra, {n: n for n in tiny_cnn})


def by_rule(report, *rules):
    assert report.plan.complete and [use.id for use in report.plan.rules] == list(rules)


def test_class_30_position_ids(repaired, tiny_vit):
    goal, more = tiny_vit(), {"embeddings.position_ids": (1, 512)}
    by_rule(repaired(goal | more, goal), "computed-buffers")
    by_rule(repaired(goal, goal | more, {n: n for n in goal}), "computed-buffers")


def test_class_31_rotary_frequencies(repaired, file_of, target_of, tiny_vit):
    goal, more = tiny_vit(), {"rotary_emb.inv_freq": (32,)}
    by_rule(repaired(goal | more, goal), "computed-buffers")
    # Their base is in no name and no shape: they are left out, and never made up.
    lacking = diagnose(file_of(goal), target_of(goal | more))
    assert not lacking.plan.complete and lacking.plan.missing == ("rotary_emb.inv_freq",)


def test_class_32_index_of_swin(repaired, tiny_vit):
    goal = tiny_vit() | {"blocks.0.attn.relative_position_bias_table": (169, 2)}
    index = {"blocks.0.attn.relative_position_index": (49, 49)}
    by_rule(repaired(goal | index, goal), "computed-buffers")
    by_rule(repaired(goal, goal | index, {n: n for n in goal}), "computed-buffers")


def test_class_32_a_mask_of_swin_is_left_out_with_consent_and_never_made_up(file_of, target_of, tiny_vit):
    goal, mask = tiny_vit(), {"blocks.1.attn_mask": (4, 49, 49)}
    assert diagnose(file_of(goal | mask), target_of(goal)).plan.needs_accept == ("extra-tensors",)
    lacking = diagnose(file_of(goal), target_of(goal | mask))
    assert not lacking.plan.complete and lacking.plan.missing == ("blocks.1.attn_mask",)


def test_class_33_a_causal_mask_called_bias(repaired, file_of, target_of):
    goal = {"h.0.attn.c_attn.weight": (4, 12), "h.0.attn.c_attn.bias": (12,)}
    mask = {"h.0.attn.bias": (1, 1, 8, 8)}
    by_rule(repaired(goal | mask, goal), "computed-buffers")
    lacking = diagnose(file_of(goal), target_of(goal | mask))
    assert not lacking.plan.complete and lacking.plan.missing == ("h.0.attn.bias",)


def test_class_34_running_statistics(file_of, target_of, tiny_cnn, ids):
    bare = without(tiny_cnn, "running_mean", "running_var", "num_batches_tracked")
    gone = diagnose(file_of(tiny_cnn), target_of(bare), accept=["extra-tensors"])
    assert gone.plan.complete and "unused-statistics" in ids(gone)
    lacking = diagnose(file_of(bare), target_of(tiny_cnn))
    assert not lacking.plan.complete and "no-statistics" in ids(lacking)
    assert "2 batch norms" in next(f.says for f in lacking.findings if f.id == "no-statistics")
    assert not ids(diagnose(file_of(tiny_cnn), target_of(tiny_cnn)))


def test_class_35_pruning_masks(file_of, target_of):
    goal = {"fc.weight": (4, 6), "fc.bias": (4,)}
    ours = {"fc.weight_orig": (4, 6), "fc.weight_mask": (4, 6), "fc.bias": (4,)}
    plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
    (step,) = [s for s in plan.steps if s.target == "fc.weight"]
    assert plan.complete and step.sources == ("fc.weight_orig", "fc.weight_mask")
    # The reverse would need a mask, which a plain weight does not hold.
    back = diagnose(file_of(goal, ordered=False), target_of(ours)).plan
    assert not back.complete and back.missing == ("fc.weight_orig", "fc.weight_mask")


def test_class_36_private_states(file_of, target_of, tiny_cnn, ids):
    report = diagnose(file_of(tiny_cnn | {"fc._extra_state": (120,)}), target_of(tiny_cnn), accept=["extra-tensors"])
    assert report.plan.complete and "extra-state" in ids(report)
    assert "extra-state" in ids(diagnose(file_of(tiny_cnn, others=("fc._extra_state",)), target_of(tiny_cnn)))


def test_class_37_an_auxiliary_head(repaired, file_of, target_of, tiny_cnn, ids):
    aux = {"AuxLogits.conv0.conv.weight": (4, 8, 1, 1), "AuxLogits.fc.weight": (10, 4)}
    assert "auxiliary-branch" in ids(repaired(tiny_cnn | aux, tiny_cnn, accept=["extra-tensors"]))
    report = diagnose(file_of(tiny_cnn), target_of(tiny_cnn | aux))
    assert "auxiliary-branch" in ids(report) and not report.plan.complete


def test_class_38_a_projection_head(file_of, target_of, tiny_vit, ids):
    goal = without(tiny_vit(), "head.weight", "head.bias")
    head = {"head.mlp.0.weight": (16, 4), "head.last_layer.weight_g": (9, 1), "head.last_layer.weight_v": (9, 16)}
    ours = {f"backbone.{n}": s for n, s in goal.items()} | head
    report = diagnose(file_of(ours), target_of(goal), accept=["extra-tensors"])
    assert report.plan.complete and "projection-head" in ids(report)


def leafwise(shapes, names, part):
    return {n: ".".join(names.get(x, x) if part in n else x for x in n.split(".")) for n in shapes}


def test_class_39_gamma_and_beta(repaired, tiny_vit):
    goal = tiny_vit()
    truth = leafwise(goal, {"weight": "gamma", "bias": "beta"}, "norm")
    repaired({truth[n]: s for n, s in goal.items()}, goal, truth)
    scaled = goal | {"blocks.0.ls1.gamma": (4,)}
    assert repaired(scaled, scaled).plan.rules == ()


@pytest.mark.parametrize("names", [{"weight": "scale"}, {"weight": "g", "bias": "b"}])
def test_class_40_other_libraries_leaves(repaired, tiny_vit, names):
    goal = tiny_vit()
    truth = leafwise(goal, names, "norm")
    repaired({truth[n]: s for n, s in goal.items()}, goal, truth)


def test_class_41_old_densenets(repaired):
    goal = {f"layer{i}.{m}{j}.weight": (2 + i, j) for i in range(3) for m in ("norm", "conv") for j in (1, 2)}
    truth = {n: n.replace("norm", "norm.").replace("conv", "conv.") for n in goal}
    assert {u.id for u in repaired({truth[n]: s for n, s in goal.items()}, goal, truth).plan.rules} == {
        "joined-segments"
    }


def test_class_42_an_mlp_block(repaired):
    goal = {f"mlp.{i}.{leaf}": s for i in (0, 3) for leaf, s in (("weight", (4 + i, 4 - i)), ("bias", (4 + i,)))}
    truth = {n: n.replace(".0.", ".linear_1.").replace(".3.", ".linear_2.") for n in goal}
    repaired({truth[n]: s for n, s in goal.items()}, goal, truth)


def test_class_43_weight_norm(repaired):
    goal = {"conv.parametrizations.weight.original0": (4, 1, 1), "conv.parametrizations.weight.original1": (4, 3, 2)}
    ours = {"conv.weight_g": (4, 1, 1), "conv.weight_v": (4, 3, 2)}
    repaired(ours, goal, dict(zip(goal, ours, strict=True)))
    repaired(goal, ours, dict(zip(ours, goal, strict=True)))


def test_class_44_spectral_norm(repaired):
    new = "fc.parametrizations.weight."
    goal = {new + "original": (4, 6), new + "0._u": (4,), new + "0._v": (6,)}
    ours = {"fc.weight_orig": (4, 6), "fc.weight_u": (4,), "fc.weight_v": (6,)}
    repaired(ours, goal, dict(zip(goal, ours, strict=True)))


def test_class_44_spectral_norm_without_its_second_vector_is_not_made_up(file_of, target_of):
    """torch 0.4 saved weight_u alone; the other vector follows from it only by iterating."""
    ours = {"fc.weight_orig": (4, 6), "fc.weight_u": (4,), "fc.bias": (4,)}
    new = "fc.parametrizations.weight."
    goal = {new + "original": (4, 6), new + "0._u": (4,), new + "0._v": (6,), "fc.bias": (4,)}
    plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
    assert not plan.complete and set(plan.missing) == set(goal) - {"fc.bias"}


def test_class_45_a_plain_weight_for_a_normed_one(file_of, target_of):
    normed = {"conv.weight_g": (4, 1, 1), "conv.weight_v": (4, 3, 2), "conv.bias": (4,)}
    plain = {"conv.weight": (4, 3, 2), "conv.bias": (4,)}
    for ours, goal in ((normed, plain), (plain, normed)):
        plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
        # The direction alone is no weight: taking it for one would load and mean nothing.
        (made,) = [s for s in plan.steps if s.target in ("conv.weight", "conv.weight_g")]
        assert plan.complete and set(made.sources) == set(ours) - {"conv.bias"}


def test_class_46_shifted_numbers_are_asked_about(file_of, target_of, placed_as):
    goal = {f"classifier.{i}.weight": (4, 4) for i in (0, 1, 2)}
    ours = {f"classifier.{i}.weight": (4, 4) for i in (1, 2, 3)}
    report = diagnose(file_of(ours, ordered=False), target_of(goal))
    assert [q.id for q in report.plan.ambiguities] == ["index-shift"] and not report.plan.complete
    moved = diagnose(file_of(ours, ordered=False), target_of(goal), choose={"index-shift": "shifted"})
    assert placed_as(moved) == {f"classifier.{i}.weight": f"classifier.{i + 1}.weight" for i in range(3)}


def test_class_47_a_nested_sequential_and_gaps(repaired):
    flat = {"features.0.weight": (8, 3), "features.2.weight": (6, 8), "features.4.weight": (5, 6)}
    gaps = {"features.0.weight": (8, 3), "features.3.weight": (6, 8), "features.6.weight": (5, 6)}
    nested = {"features.0.0.weight": (8, 3), "features.0.2.weight": (6, 8), "features.1.0.weight": (5, 6)}
    repaired(nested, flat, dict(zip(flat, nested, strict=True)))
    # 0 stayed 0, which contradicts nothing: no other layer is like it.
    repaired(gaps, flat, dict(zip(flat, gaps, strict=True)))


def test_class_48_the_reduction_of_swin(repaired):
    stages = {f"layers.{n}.blocks.0.weight": (4 * 2**n,) for n in range(3)}
    goal = stages | {f"layers.{n + 1}.downsample.weight": (2**n, 8) for n in range(2)}
    truth = {n: n for n in stages} | {
        f"layers.{n + 1}.downsample.weight": f"layers.{n}.downsample.weight" for n in (0, 1)
    }
    repaired({truth[n]: s for n, s in goal.items()}, goal, truth)


def test_class_49_blocks_in_chunks(repaired, tiny_vit):
    goal = tiny_vit(depth=4)
    truth = {n: n for n in goal}
    for i in range(4):
        truth |= {n: n.replace(f"blocks.{i}.", f"blocks.{i // 2}.{i}.") for n in goal if n.startswith(f"blocks.{i}.")}
    repaired({truth[n]: s for n, s in goal.items()}, goal, truth)


def esrgan(*, old: bool):
    names = ("model.1.sub.{}.RDB{}.conv{}.0.weight", "body.{}.rdb{}.conv{}.weight")
    return {names[not old].format(i, j, k): (4, 4 * k) for i in range(2) for j in (1, 2, 3) for k in (1, 2)}


def test_class_50_old_names_of_a_family(file_of, target_of, ids, placed_as):
    ours, goal = esrgan(old=True), esrgan(old=False)
    report = diagnose(file_of(ours), target_of(goal))
    assert {"esrgan-names", "other-words"} <= set(ids(report))
    assert report.plan.complete and placed_as(report) == dict(zip(goal, ours, strict=True))


def test_class_51_another_library(file_of, target_of, shapes, placed_as):
    goal = shapes("mobilenet_v2")
    modules = {m: f"other{i}" for i, m in enumerate(dict.fromkeys(n.rpartition(".")[0] for n in goal))}
    truth = {n: f"{modules[n.rpartition('.')[0]]}.{n.rpartition('.')[2]}" for n in goal}
    ours = {truth[n]: s for n, s in goal.items()}
    report = diagnose(file_of(ours), target_of(goal))
    assert not report.plan.complete and report.plan.needs_accept == ("same-order",)
    assert placed_as(diagnose(file_of(ours), target_of(goal), accept=["same-order"])) == truth
    assert diagnose(file_of(ours, ordered=False), target_of(goal)).plan is None


def test_class_52_caffe2(file_of, target_of, shapes):
    ours = {
        f"res{s}_{b}_branch2{x}_{leaf}": (4,)
        for s in (2, 3)
        for b in (0, 1)
        for x in "abc"
        for leaf in ("w", "bn_s", "bn_b")
    }
    report = diagnose(file_of(ours, ordered=False), target_of(shapes("resnet50")))
    assert report.plan is None and "Caffe2" in report.refusal


def test_class_53_other_separators(repaired, tiny_vit):
    goal = tiny_vit()
    for other in ("_", "/"):
        truth = {n: n.replace(".", other) for n in goal}
        repaired({truth[n]: s for n, s in goal.items()}, goal, truth)


def test_class_54_another_spelling_of_a_part(repaired, file_of, target_of, tiny_vit):
    goal = {
        f"{part}.{n}": s
        for part in ("row_trans", "body")
        for n, s in tiny_vit(width=8 if part == "body" else 4).items()
    }
    truth = {n: n.replace("row_trans", "row_clue_transformer") for n in goal}
    ours = {truth[n]: s for n, s in goal.items()}
    # Both words begin alike, and the other part has its own name.
    repaired(ours, goal, truth)
    repaired(ours, goal, truth, ordered=True)
