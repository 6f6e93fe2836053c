"""Classes 55 to 76 of the catalogue: other sizes, other layouts, and pieces of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint


@pytest.fixture
def ids():
    return lambda report: {f.id for f in report.findings}


@pytest.fixture
def unsure():
    """What the findings say that cannot be told, and how much it matters."""
    return lambda report: {
        dict(f.evidence)["about"]: f.severity.value for f in report.findings if f.id == "cannot-tell"
    }


def refused(report):
    assert report.plan is None
    return report.refusal


def test_class_55_another_number_of_classes(file_of, target_of, tiny_cnn, ids):
    goal = tiny_cnn | {"fc.weight": (2, 16), "fc.bias": (2,)}
    report = diagnose(file_of(tiny_cnn), target_of(goal))
    assert report.plan.needs_accept == ("head-mismatch",) and "background-class" not in ids(report)
    one_more = tiny_cnn | {"fc.weight": (11, 16), "fc.bias": (11,)}
    background = diagnose(file_of(one_more), target_of(tiny_cnn), accept=["head-mismatch"])
    assert "background-class" in ids(background)
    assert not any(s.source and s.source.startswith("fc.") and s.target for s in background.plan.steps)


def test_class_56_other_input_channels(file_of, target_of, tiny_cnn):
    report = diagnose(file_of(tiny_cnn), target_of(tiny_cnn | {"conv1.weight": (8, 1, 3, 3)}))
    assert report.plan.needs_accept == ("first-convolution",)


def test_class_57_another_grid(file_of, target_of, tiny_vit):
    report = diagnose(file_of(tiny_vit()), target_of(tiny_vit() | {"pos_embed": (1, 10, 4)}))
    assert report.plan.needs_accept == ("position-grid",)


def test_class_58_an_extra_token_is_asked_about_and_never_made_up(file_of, target_of, tiny_vit):
    more = tiny_vit() | {"pos_embed": (1, 6, 4)}
    plan = diagnose(file_of(more), target_of(tiny_vit()), accept=["prefix-tokens"]).plan
    assert [q.id for q in plan.ambiguities] == ["prefix-tokens"] and not plan.complete
    assert "not another picture size" in refused(diagnose(file_of(tiny_vit()), target_of(more)))


def test_class_59_another_window_needs_consent(file_of, target_of, tiny_vit):
    table = "blocks.0.attn.relative_position_bias_table"
    ours, goal = file_of(tiny_vit() | {table: (9, 2)}), target_of(tiny_vit() | {table: (25, 2)})
    assert diagnose(ours, goal).plan.needs_accept == ("window-size",)
    assert diagnose(ours, goal, accept=["window-size"]).plan.complete


def test_class_60_another_size_is_named(file_of, architecture, target_of, tiny_vit, shapes):
    says = refused(diagnose(file_of(tiny_vit(width=8)), target_of(tiny_vit())))
    assert "another size" in says
    large = refused(diagnose(file_of(shapes("vit_b_16")), architecture("vit_l_16")))
    assert "this is torchvision/vit_b_16, not torchvision/vit_l_16" in large


def test_class_61_another_depth_is_named(file_of, architecture, target_of, tiny_vit, shapes, ids):
    other = diagnose(file_of(shapes("vgg13")), architecture("vgg19"))
    assert not other.plan.complete and other.plan.missing
    assert any("torchvision/vgg13" in f.says and "torchvision/vgg19" in f.says for f in other.findings)
    deeper = diagnose(file_of(tiny_vit(depth=5)), target_of(tiny_vit()))
    assert [q.id for q in deeper.plan.ambiguities] == ["fewer-blocks"] and "deeper network" in deeper.says
    told = {"choose": {"fewer-blocks": "all"}}
    assert "deeper network" in refused(diagnose(file_of(tiny_vit(depth=5)), target_of(tiny_vit()), **told))
    told = {"choose": {"fewer-blocks": "first"}, "accept": ["extra-tensors"]}
    student = diagnose(file_of(tiny_vit(depth=5)), target_of(tiny_vit()), **told).plan
    assert student.complete and all(s.source == s.target for s in student.steps if s.target)
    # Blocks in front of others are no beginning, and a network of several rows is another one.
    first = {n.replace("blocks.0.", "blocks.9."): s for n, s in tiny_vit(depth=4).items()}
    goal = {n: s for n, s in first.items() if "blocks.1." not in n}
    report = diagnose(file_of(first), target_of(goal))
    assert report.plan is None or "fewer-blocks" not in [q.id for q in report.plan.ambiguities]
    shallow = diagnose(file_of(tiny_vit()), target_of(tiny_vit(depth=5)))
    assert "other-depth" in ids(shallow) and not shallow.plan.complete


def test_class_62_a_convolution_of_one_by_one(saved, target_of):
    state = {"proj.weight": torch.rand(4, 6, 1, 1), "out.weight": torch.rand(3, 4)}
    plan = diagnose(saved(state), target_of({"proj.weight": (4, 6), "out.weight": (3, 4)})).plan
    assert plan.complete and torch.equal(
        apply_plan(saved(state), plan)["proj.weight"], state["proj.weight"][:, :, 0, 0]
    )


def test_class_63_a_fully_connected_layer_as_a_convolution_is_asked_about(file_of, target_of):
    flat, kernel = {"fc.weight": (6, 36), "out.weight": (2, 6)}, {"fc.weight": (6, 4, 3, 3), "out.weight": (2, 6)}
    for ours, goal in ((flat, kernel), (kernel, flat)):
        plan = diagnose(file_of(ours), target_of(goal)).plan
        assert [q.id for q in plan.ambiguities] == ["flattened-kernel"] and not plan.complete


def test_class_64_transposed_linear_layers(saved, target_of):
    goal = {"mlp.fc1.weight": (8, 4), "mlp.fc2.weight": (4, 8), "head.weight": (4, 4)}
    state = {n: torch.rand(*s[::-1]) for n, s in goal.items()}
    plan = diagnose(saved(state), target_of(goal)).plan
    # The head is square: no shape shows it, and it has no block to go with.
    assert [q.id for q in plan.ambiguities] == ["transposed-shapes", "transposed"] and not plan.complete
    answers = {"transposed-shapes": "transposed", "transposed": "transposed"}
    made = apply_plan(saved(state), diagnose(saved(state), target_of(goal), choose=answers).plan)
    assert all(torch.equal(made[n], t.T) for n, t in state.items())


def test_class_65_channels_last(file_of, target_of):
    ours = {"conv1.weight": (3, 3, 3, 8), "conv2.weight": (3, 3, 8, 16)}
    goal = {"conv1.weight": (8, 3, 3, 3), "conv2.weight": (16, 8, 3, 3)}
    (question,) = diagnose(file_of(ours), target_of(goal)).plan.ambiguities
    assert question.id == "channels-last"  # (h, w, in, out) or (w, h, in, out)
    assert diagnose(file_of(ours), target_of(goal), choose={"channels-last": "hwio"}).plan.complete


def test_class_66_several_orders_of_axes_are_asked_about(file_of, target_of):
    ours, goal = {"conv.weight": (16, 3, 3, 3, 32)}, {"conv.weight": (32, 16, 3, 3, 3)}
    rest = {"fc.weight": (2, 9)}
    report = diagnose(file_of(ours | rest), target_of(goal | rest))
    (question,) = report.plan.ambiguities
    assert "6 ways" in question.question and not report.plan.complete  # 3! arrangements of the threes


def attention(names):
    names = names | {"proj": (4, 4)}
    found = {f"h.{i}.attn.{n}.weight": s for i in range(2) for n, s in names.items()}
    return found | {"ln.weight": (4,), "head.weight": (9, 4)}


def test_class_67_query_key_and_value(file_of, target_of, unsure):
    apart, fused = attention({"q_proj": (4, 4), "k_proj": (4, 4), "v_proj": (4, 4)}), attention({"qkv": (12, 4)})
    report = diagnose(file_of(apart, ordered=False), target_of(fused))
    assert [q.id for q in report.plan.ambiguities] == ["qkv-order"] and unsure(report) == {"qkv-order": "warning"}
    assert unsure(diagnose(file_of(fused), target_of(fused))) == {}


def test_class_68_biases_without_key(saved, target_of):
    state = {"attn.qkv.weight": torch.rand(12, 4), "attn.q_bias": torch.rand(4), "attn.v_bias": torch.rand(4)}
    goal = {"attn.qkv.weight": (12, 4), "attn.qkv.bias": (12,)}
    assert diagnose(saved(state), target_of(goal)).plan.needs_accept == ("query-value-bias",)
    plan = diagnose(saved(state), target_of(goal), accept=["query-value-bias"]).plan
    made = apply_plan(saved(state), plan)["attn.qkv.bias"]
    assert torch.equal(made, torch.cat([state["attn.q_bias"], torch.zeros(4), state["attn.v_bias"]]))


def llama(names):
    layer = {"q": (4, 4), "k": (4, 4), "gate": (8, 4)}
    return {f"layers.{i}.{names[n]}.weight": s for i in range(2) for n, s in layer.items()} | {"norm.weight": (4,)}


def test_class_69_rotary_halves_are_asked_about_or_cannot_be_told(file_of, target_of, unsure, tiny_vit):
    hugging = llama({"q": "self_attn.q_proj", "k": "self_attn.k_proj", "gate": "mlp.gate_proj"})
    meta = llama({"q": "attention.wq", "k": "attention.wk", "gate": "feed_forward.w1"})
    assert unsure(diagnose(file_of(hugging), target_of(hugging))) == {"rope-layout": "notice"}
    answers = {"symmetric": "in-order"}
    waiting = diagnose(file_of(meta), target_of(hugging), accept=["same-order"], choose=answers)
    assert not waiting.plan.complete and [q.id for q in waiting.plan.ambiguities] == ["rotary-halves"]
    answers["rotary-halves"] = "as-it-is"
    crossed = diagnose(file_of(meta), target_of(hugging), accept=["same-order"], choose=answers)
    assert crossed.plan.complete and unsure(crossed) == {"rope-layout": "warning"}
    assert unsure(diagnose(file_of(tiny_vit()), target_of(tiny_vit()))) == {}


def test_class_70_experts_and_gates_cannot_be_told(file_of, target_of, unsure):
    rest = {"norm.weight": (4,), "head.weight": (9, 4)}
    ours = {f"layers.0.mlp.experts.{i}.up_proj.weight": (8, 4) for i in range(3)} | rest
    goal = {"layers.0.mlp.experts.gate_up_proj": (3, 16, 4)} | rest
    report = diagnose(file_of(ours), target_of(goal))
    assert not report.plan.complete and unsure(report) == {"stacked-experts": "warning"}
    assert "stacked-experts" not in unsure(diagnose(file_of(goal), target_of(goal)))
    gated = {"a.norm.weight": (4,), "a.mlp.w12.weight": (16, 4), "a.mlp.w3.weight": (4, 8)}
    other = {"y.weight": (4,), "x.gate_up_proj.weight": (16, 4), "x.down.weight": (4, 8)}
    assert unsure(diagnose(file_of(other), target_of(gated), accept=["same-order"])) == {"gate-up-order": "warning"}
    assert unsure(diagnose(file_of(gated), target_of(gated))) == {}


def test_class_71_tied_weights(file_of, target_of):
    both = {"wte.weight": (9, 4), "h.weight": (4, 4), "lm_head.weight": (9, 4)}
    once = {n: s for n, s in both.items() if n != "lm_head.weight"}
    # Filled only by the target's word or the user's.
    assert diagnose(file_of(once), target_of(both)).plan.needs_accept == ("tied-weights",)
    assert diagnose(file_of(once), target_of(both, ties=(("wte.weight", "lm_head.weight"),))).plan.complete
    # A second copy is left out, if the numbers say that it is one, which is looked at when it is applied.
    plan = diagnose(file_of(both), target_of(once)).plan
    (left,) = [s for s in plan.steps if s.target is None]
    assert plan.complete and left.value == "copy" and left.beside == ("wte.weight",)


def test_class_72_tensors_that_share_memory(saved, target_of):
    whole = torch.rand(4, 4)
    state = {"a.weight": whole, "b.weight": whole, "c.weight": torch.rand(2, 4)}
    plan = diagnose(saved(state), target_of({n: tuple(t.shape) for n, t in state.items()})).plan
    made = apply_plan(saved(state), plan)
    assert made["a.weight"].data_ptr() == made["b.weight"].data_ptr() != made["c.weight"].data_ptr()


def test_class_73_a_scalar_as_a_vector(file_of, target_of, tiny_cnn):
    vector = {n: ((1,) if s == () else s) for n, s in tiny_cnn.items()}
    for ours, goal in ((vector, tiny_cnn), (tiny_cnn, vector)):
        report = diagnose(file_of(ours), target_of(goal))
        assert report.plan.complete and [u.id for u in report.plan.rules] == ["scalar-shape"]


def rank(shapes, ranks):
    """Megatron's cut: qkv and fc1 by rows, proj and fc2 by columns."""
    found = {}
    for n, s in shapes.items():
        if ".qkv." in n or ".fc1." in n:
            s = (s[0] // ranks, *s[1:])
        elif n.endswith(("attn.proj.weight", "fc2.weight")):
            s = (s[0], s[1] // ranks)
        found[n] = s
    return found


def test_class_74_a_tensor_parallel_rank(file_of, target_of, tiny_vit):
    for ranks in (2, 4):
        says = refused(diagnose(file_of(rank(tiny_vit(width=8), ranks)), target_of(tiny_vit(width=8))))
        assert f"one of {ranks} tensor-parallel ranks" in says and "by columns" in says and "by rows" in says
    assert "tensor-parallel" not in refused(diagnose(file_of(tiny_vit(width=4)), target_of(tiny_vit(width=8))))


def test_class_75_placeholders_of_zero(file_of, target_of, tiny_vit):
    empty = dict.fromkeys(tiny_vit(), (0,))
    assert "zero_to_fp32.py" in refused(diagnose(file_of(empty), target_of(tiny_vit())))
    assert "GatheredParameters" in refused(diagnose(file_of(tiny_vit()), target_of(empty)))


def test_class_76_a_part_of_a_distributed_tensor(file_of, target_of, tiny_cnn):
    checkpoint = file_of(tiny_cnn)
    note = "DTensor Shard(0) over a mesh of 2 devices; this file holds 5x16 of it"
    tensors = tuple(replace(t, note=note) if t.name == "fc.weight" else t for t in checkpoint.tensors)
    state = replace(checkpoint.state_dicts[0], tensors=tensors)
    says = refused(diagnose(replace(checkpoint, tensors=tensors, state_dicts=(state,)), target_of(tiny_cnn)))
    assert "fc.weight" in says and "full_tensor" in says


def test_class_88_patch_mergings_of_openmmlab_are_reordered(file_of, target_of):
    ours = {"layers.0.blocks.0.attn.w_msa.qkv.weight": (12, 4), "layers.0.downsample.reduction.weight": (8, 16)}
    goal = {name.replace("w_msa.", ""): shape for name, shape in ours.items()}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    (step,) = [s for s in plan.steps if s.rule == "inner-order"]
    assert plan.complete and (step.target, step.value) == ("layers.0.downsample.reduction.weight", "merging:4,2,2")


def test_class_90_gate_and_value(file_of, target_of):
    rest = {"norm.weight": (4,), "mlp.down_proj.weight": (4, 8)}
    apart = rest | {"mlp.gate_proj.weight": (8, 4), "mlp.up_proj.weight": (8, 4)}
    fused = rest | {"mlp.wi.weight": (16, 4)}
    for ours, goal in ((apart, fused), (fused, apart)):
        plan = diagnose(file_of(ours), target_of(goal)).plan
        assert [q.id for q in plan.ambiguities] == ["gate-up-order"] and not plan.complete
        assert diagnose(file_of(ours), target_of(goal), choose={"gate-up-order": "up-first"}).plan.complete


def test_class_91_stacked_layers(file_of, target_of):
    rest = {"norm.weight": (4,)}
    numbered = rest | {f"experts.{i}.w1.weight": (8, 4) for i in range(3)}
    for stack in ((3, 8, 4), (3, 4, 8), (24, 4)):
        stacked = rest | {"experts.w1": stack}
        for ours, goal in ((numbered, stacked), (stacked, numbered)):
            assert diagnose(file_of(ours), target_of(goal)).plan.complete


def test_class_92_one_matrix_under_a_name_of_several_orders(file_of, target_of):
    ours = {f"layers.{i}.attention.query_key_value.weight": (48, 16) for i in (0, 1)}
    goal = {f"blocks.{i}.attn.qkv.weight": (48, 16) for i in (0, 1)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert [q.id for q in plan.ambiguities] == ["fused-order"] and not plan.complete
    assert diagnose(file_of(ours), target_of(goal), choose={"fused-order": "4-heads"}).plan.complete


def test_class_93_another_part_of_the_system(file_of, target_of):
    layers = {f"layers.{i}.fc{n}.weight": (4, 4) for i in (0, 1) for n in (1, 2)}
    for one, other in (("text_model", "vision_model"), ("critic", "actor"), ("flow_stream", "rgb_stream")):
        ours, goal = ({f"{part}.{name}": shape for name, shape in layers.items()} for part in (one, other))
        plan = diagnose(file_of(ours), target_of(goal)).plan
        assert [q.id for q in plan.ambiguities] == ["rename"] and not plan.complete
    # The name of a whole network is no part.
    ours, goal = ({f"{part}.{name}": shape for name, shape in layers.items()} for part in ("net", "backbone"))
    assert diagnose(file_of(ours), target_of(goal)).plan.complete
    heads = {"stem.conv.weight": (8, 3, 3, 3), "stem.fc.weight": (12, 8)}
    ours, goal = heads | {"head_food.weight": (5, 12)}, heads | {"head_flowers.weight": (5, 12)}
    assert [q.id for q in diagnose(file_of(ours), target_of(goal)).plan.ambiguities] == ["related-names"]


def test_class_94_numbers_about_the_weights(target_of, tmp_path):
    import torch

    from inspector.readers import open_checkpoint

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    goal = {name: tuple(t.shape) for name, t in model.state_dict().items()}
    for key in ("grads", "weight_diff", "exp_avg"):
        torch.save({key: model.state_dict(), "loss": 0.3}, tmp_path / "net.pth")
        report = diagnose(open_checkpoint(tmp_path / "net.pth"), target_of(goal))
        assert report.plan is None and f'"{key}" names numbers about the weights' in report.says
    torch.save({f"fisher.{name}": t for name, t in model.state_dict().items()}, tmp_path / "net.pth")
    assert diagnose(open_checkpoint(tmp_path / "net.pth"), target_of(goal)).plan is None


def test_class_95_recurrent_layers_of_keras(file_of, target_of):
    ours = {"lstm/kernel": (5, 28), "lstm/recurrent_kernel": (7, 28), "lstm/bias": (28,)}
    goal = {"lstm.weight_ih_l0": (28, 5), "lstm.weight_hh_l0": (28, 7)} | {f"lstm.bias_{n}_l0": (28,) for n in HALVES}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and {use.id for use in plan.rules} == {"recurrent-gates"}


HALVES = ("ih", "hh")


def test_class_96_positions_of_longer_texts(file_of, target_of):
    ours, goal = ({"wte.weight": (9, 4), "wpe.weight": (rows, 4)} for rows in (32, 20))
    assert diagnose(file_of(ours), target_of(goal)).plan.needs_accept == ("fewer-positions",)


def test_class_97_a_folded_batch_norm(file_of, target_of):
    norm = {f"bn1.{leaf}": (6,) for leaf in ("weight", "bias", "running_mean", "running_var")}
    with_norm, folded = {"conv1.weight": (6, 3, 3, 3)} | norm, {"conv1.weight": (6, 3, 3, 3), "conv1.bias": (6,)}
    for ours, goal in ((with_norm, folded), (folded, with_norm)):
        report = diagnose(file_of(ours), target_of(goal), accept=("extra-tensors",), partial=True)
        assert report.plan is None and "fold" in report.refusal


def test_class_98_layers_of_a_recurrent_module(file_of, target_of):
    layer = {"weight_ih": (32, 8), "weight_hh": (32, 8), "bias_ih": (32,), "bias_hh": (32,)}
    one = {f"lstm.{n}_l{i}": s for i in range(2) for n, s in layer.items()}
    apart = {f"lstms.{i}.{n}_l0": s for i in range(2) for n, s in layer.items()}
    for ours, goal in ((one, apart), (apart, one)):
        plan = diagnose(file_of(ours, ordered=False), target_of(goal)).plan
        assert plan.complete and {s.target: s.source for s in plan.steps} == dict(zip(goal, ours, strict=True))


def test_class_99_numbers_for_names_and_rows_from_the_other_end(file_of, target_of):
    net = {"stem.conv.weight": (8, 3, 3, 3), "mid.conv.weight": (16, 8, 3, 3), "top.conv.weight": (4, 16, 3, 3)}
    counted = {n.replace("stem", "0").replace("mid", "2").replace("top", "5"): s for n, s in net.items()}
    plan = diagnose(file_of(counted), target_of(net)).plan
    assert plan.complete and {s.target: s.source for s in plan.steps} == dict(zip(net, counted, strict=True))
    up = {f"up{n}.weight": s for n, s in ((1, (8, 24, 3, 3)), (2, (4, 12, 3, 3)), (3, (3, 7, 3, 3)))}
    back = {f"up{4 - int(n[2])}.weight": s for n, s in up.items()}
    plan = diagnose(file_of(back), target_of(up)).plan
    assert plan.complete and {s.target: s.source for s in plan.steps} == dict(zip(up, back, strict=True))


def test_class_100_kernels_over_films(file_of, target_of):
    ours, goal = {"c.weight": (4, 3, 3, 3), "f.weight": (2, 4)}, {"c.weight": (4, 3, 5, 3, 3), "f.weight": (2, 4)}
    assert diagnose(file_of(ours), target_of(goal)).plan.needs_accept == ("inflated-kernels",)
    assert diagnose(file_of(ours), target_of(goal), accept=["inflated-kernels"]).plan.complete


def test_class_101_the_first_blocks_of_a_deeper_network(file_of, target_of, tiny_vit):
    plan = diagnose(file_of(tiny_vit(depth=5)), target_of(tiny_vit())).plan
    assert [q.id for q in plan.ambiguities] == ["fewer-blocks"] and not plan.complete


def test_class_102_every_row_is_counted_from_one(file_of, target_of, placed_as):
    rows = {"layers": 3, "norms": 2}
    goal = {f"{row}.{i}.weight": (4, 4) for row, n in rows.items() for i in range(n)}
    ours = {f"{row}.{i + 1}.weight": (4, 4) for row, n in rows.items() for i in range(n)}
    report = diagnose(file_of(ours), target_of(goal))
    assert report.plan.complete and [rule.id for rule in report.plan.rules] == ["counted-from"]
    assert placed_as(report) == dict(zip(goal, ours, strict=True))


def test_class_103_pictures_that_are_flattened_and_unfolded(file_of, target_of):
    conv = {"conv1.weight": (4, 3, 3, 3), "conv1.bias": (4,), "conv2.weight": (6, 4, 3, 3), "conv2.bias": (6,)}
    ours = {"conv1/kernel": (3, 3, 3, 4), "conv1/bias": (4,), "conv2/kernel": (3, 3, 4, 6), "conv2/bias": (6,)}
    behind, before = {"fc.weight": (5, 24), "fc.bias": (5,)}, {"fc.weight": (27, 7), "fc.bias": (27,)}
    for goal, question in ((conv | behind, "flatten-order"), (before | conv, "unfold-order")):
        matrix = {"fc/kernel": goal["fc.weight"][::-1], "fc/bias": goal["fc.bias"]}
        file = matrix | ours if question == "unfold-order" else ours | matrix
        plan = diagnose(file_of(file), target_of(goal)).plan
        assert [asked.id for asked in plan.ambiguities] == [question] and not plan.complete


def test_class_104_what_is_said_beside_the_numbers(saved, target_of):
    state = {"fc.weight": torch.randn(3, 4), "fc.bias": torch.randn(3)}
    goal = target_of({"fc.weight": (3, 4), "fc.bias": (3,)})
    said = replace(saved(state), metadata=(("kind", "fisher information"),))
    assert [question.id for question in diagnose(said, goal).plan.ambiguities] == ["stated-beside"]
    assert not diagnose(said, goal).plan.complete and diagnose(saved(state), goal).plan.complete


def test_class_105_one_tensor_under_two_names(tmp_path, target_of):
    own = {"fc.weight": torch.randn(5, 4), "fc.bias": torch.randn(5)}
    torch.save(own | {f"module.{name}": value for name, value in own.items()}, tmp_path / "file.pth")
    checkpoint = open_checkpoint(tmp_path / "file.pth")
    plan = diagnose(checkpoint, target_of({n: tuple(v.shape) for n, v in own.items()})).plan
    assert plan.complete and not plan.needs_accept
    assert {s.rule for s in plan.steps if s.target is None} == {"one-storage"}


def test_class_106_gates_whose_order_the_names_say(saved, target_of):
    width = 4
    whole = torch.randn(4 * width, width)
    i, f, g, o = whole.chunk(4)  # torch's order
    checkpoint = saved({"lstm.weight_ih_iofg": torch.cat([i, o, f, g]), "lstm.weight_hh_iofg": torch.cat([i, o, f, g])})
    plan = diagnose(checkpoint, target_of({f"lstm.weight_{x}_l0": (4 * width, width) for x in ("ih", "hh")})).plan
    assert plan.complete and not plan.ambiguities
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(value, whole) for value in made.values())


def test_class_107_one_way_that_shapes_leave(file_of, target_of):
    shapes = ((6, 1, 5, 5), (16, 6, 5, 5), (10, 84))
    names = ("faltung1", "faltung2", "ausgabe")
    file = file_of({f"{n}.weight": s for n, s in zip(names, shapes, strict=True)}, ordered=False)
    goal = {f"{n}.weight": s for n, s in zip(("conv1", "conv2", "fc"), shapes, strict=True)}
    assert diagnose(file, target_of(goal)).plan.needs_accept == ("same-shape",)


def test_class_108_order_against_the_numbers_in_names(file_of, target_of):
    ours = {f"svertka{n}.{last}": s for n in (3, 2, 1) for last, s in (("weight", (8, 8, 3, 3)), ("bias", (8,)))}
    goal = {f"conv{n}.{last}": s for n in (1, 2, 3) for last, s in (("weight", (8, 8, 3, 3)), ("bias", (8,)))}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert not plan.complete
    assert "against-numbers" in [q.id for q in plan.ambiguities]
