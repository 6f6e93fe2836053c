"""Matrices the other way round: shown by their shapes, inherited by square ones, asked where nothing tells."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint


def block(n=0, width=4):
    sizes = {"attn.qkv": (3 * width, width), "attn.proj": (width, width), "mlp.fc1": (9, width), "mlp.fc2": (width, 9)}
    return {
        f"blocks.{n}.{k}.{leaf}": s for k, full in sizes.items() for leaf, s in (("weight", full), ("bias", full[:1]))
    }


def turned(net):
    return {n: s[::-1] if len(s) == 2 else s for n, s in net.items()}


def permuted(plan):
    return {s.target for s in plan.steps if s.kind is StepKind.PERMUTE}


def conv1d(n=0, width=4):
    """GPT-2's block under transformers' names, in torch's layout."""
    sizes = {
        "attn.c_attn": (3 * width, width),
        "attn.c_proj": (width, width),
        "mlp.c_fc": (9, width),
        "mlp.c_proj": (width, 9),
    }
    return {f"h.{n}.{k}.{leaf}": s for k, full in sizes.items() for leaf, s in (("weight", full), ("bias", full[:1]))}


def test_square_matrices_of_conv1d_go_as_the_others(file_of, target_of):
    net = conv1d(0) | conv1d(1)
    plan = diagnose(file_of(turned(net)), target_of(net)).plan
    assert plan.complete and permuted(plan) == {n for n in net if n.endswith("weight")}
    healthy = diagnose(file_of(net), target_of(net)).plan
    assert healthy.complete and not permuted(healthy)


def test_a_linear_gate_in_a_block_of_conv1d_is_not_transposed_as_its_neighbours_are(file_of, target_of):
    net = conv1d() | {"h.0.gate.weight": (4, 4), "h.0.gate.bias": (4,), "h.0.adapter.up.weight": (4, 4)}
    ours = turned(conv1d()) | {n: net[n] for n in net if "gate" in n or "adapter" in n}
    waiting = diagnose(file_of(ours), target_of(net)).plan
    assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["transposed"]
    plan = diagnose(file_of(ours), target_of(net), choose={"transposed": "as-it-is"}).plan
    assert plan.complete and permuted(plan) == {n for n in conv1d() if n.endswith("weight")}
    each = {"transposed:h.0.gate": "as-it-is", "transposed:h.0.adapter.up": "transposed"}
    plan = diagnose(file_of(ours), target_of(net), choose=each).plan
    assert plan.complete and "h.0.adapter.up.weight" in permuted(plan) and "h.0.gate.weight" not in permuted(plan)


def test_square_matrices_called_weight_are_asked_about_beside_turned_ones(file_of, target_of):
    net = block(0) | block(1)
    for ours in (turned(net), turned(block(0)) | block(1)):
        waiting = diagnose(file_of(ours), target_of(net)).plan
        assert not waiting.complete and waiting.ambiguities[0].id == "transposed"
    plan = diagnose(file_of(turned(net)), target_of(net), choose={"transposed": "transposed"}).plan
    assert plan.complete and permuted(plan) == {n for n in net if n.endswith("weight")}
    halves = {"transposed:blocks.0.attn.proj": "transposed", "transposed:blocks.1.attn.proj": "as-it-is"}
    halves |= {"transposed-parts": "as-it-is"}
    plan = diagnose(file_of(turned(block(0)) | block(1)), target_of(net), choose=halves).plan
    assert plan.complete and permuted(plan) == {n for n in block(0) if n.endswith("weight")}


@pytest.mark.parametrize("name", ["adapter.c_proj", "gate.c_attn", "attn.adapter.c_proj", "mlp.c_attn", "c_proj"])
def test_an_adapter_that_borrows_a_name_of_conv1d_is_asked_about(name, file_of, target_of):
    extra = {f"h.0.{name}.weight": (4, 4), f"h.0.{name}.bias": (4,)}
    waiting = diagnose(file_of(turned(conv1d()) | extra), target_of(conv1d() | extra)).plan
    assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["transposed"]
    assert waiting.ambiguities[0].places == (f"h.0.{name}",)


@pytest.mark.parametrize("leaf", ["weight_hh_l0", "weight_v", "W", "proj", "gate_up"])
def test_a_square_matrix_of_any_name_is_asked_about_beside_turned_ones(leaf, file_of, target_of):
    goal = {"a.weight": (9, 4), "a.bias": (9,), f"cell.{leaf}": (4, 4), "cell.pos_embed": (4, 4)}
    waiting = diagnose(file_of(goal | {"a.weight": (4, 9)}), target_of(goal)).plan
    assert not waiting.complete and waiting.ambiguities[0].places == ("cell",)
    assert diagnose(file_of(goal), target_of(goal)).plan.complete


def test_embeddings_are_no_matrices_to_be_turned(file_of, target_of):
    net = conv1d() | {"wte.weight": (4, 4), "wpe.weight": (4, 4)}
    ours = turned(conv1d()) | {"wte.weight": (4, 4), "wpe.weight": (4, 4)}
    plan = diagnose(file_of(ours), target_of(net)).plan
    assert plan.complete and permuted(plan) == {n for n in conv1d() if n.endswith("weight")}


@pytest.mark.parametrize("module", ["embedding", "embed.embedding", "wte", "embeddings", "word_embeddings", "shared"])
def test_a_kernel_is_a_layer_whatever_its_module_is_called(module, file_of, target_of):
    goal = {f"{module}.weight": (6, 6), f"{module}.bias": (6,), "out.weight": (9, 6), "out.bias": (9,)}
    ours = {f"{module}.kernel": (6, 6), f"{module}.bias": (6,), "out.kernel": (6, 9), "out.bias": (9,)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and permuted(plan) == {f"{module}.weight", "out.weight"}
    # Where no other matrix tells, and no library is proved, nobody knows.
    alone = [{n: s for n, s in side.items() if "out" not in n} for side in (ours, goal)]
    plan = diagnose(file_of(alone[0]), target_of(alone[1])).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed"]


def test_a_layer_is_not_taken_for_a_table_by_a_word_around_it(file_of, target_of):
    """Of Flax, below a module's name that the target lacks."""
    goal = {"embedding.weight": (7, 6), "fc.weight": (6, 6), "fc.bias": (6,)}
    ours = {
        "params/embedding/embedding": (7, 6),
        "params/fc/embedding/kernel": (6, 6),
        "params/fc/embedding/bias": (6,),
    }
    plan = diagnose(file_of(ours), target_of(goal), accept=("same-order",)).plan
    assert plan.complete and permuted(plan) == {"fc.weight"}


@pytest.mark.parametrize("module", ["embedding", "wte", "word_embeddings"])
def test_a_layer_under_an_embeddings_name_is_asked_about_beside_turned_ones(module, file_of, target_of):
    goal = {f"{module}.weight": (6, 6), f"{module}.bias": (6,), "out.weight": (9, 6), "out.bias": (9,)}
    plan = diagnose(file_of(goal | {"out.weight": (6, 9)}), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed"]
    table = {n: s for n, s in goal.items() if n != f"{module}.bias"}
    plan = diagnose(file_of(table | {"out.weight": (6, 9)}), target_of(table)).plan
    assert plan.complete and permuted(plan) == {"out.weight"}


@pytest.mark.parametrize(("table", "place"), [("embedding", "tok"), ("embeddings", "emb"), ("embedding_table", "wte")])
def test_a_square_table_lies_as_it_is_beside_turned_kernels(table, place, file_of, target_of):
    goal = {f"{place}.weight": (6, 6), "out.weight": (9, 6), "out.bias": (9,), "fc.weight": (6, 6)}
    ours = {f"{place}.{table}": (6, 6), "out.kernel": (6, 9), "out.bias": (9,), "fc.kernel": (6, 6)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and permuted(plan) == {"out.weight", "fc.weight"}


def test_w_in_an_embedding_is_a_table_or_a_layer_and_asked_about(file_of, target_of):
    goal = {"embedding.weight": (6, 6), "out.weight": (9, 6), "out.bias": (9,)}
    plan = diagnose(file_of({"embedding.w": (6, 6), "out.w": (6, 9), "out.b": (9,)}), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed"]


def test_a_square_matrix_without_such_a_neighbour_is_asked_about(file_of, target_of):
    net = conv1d(0) | {"pooler.dense.weight": (4, 4), "pooler.dense.bias": (4,)}
    plan = diagnose(file_of(turned(net)), target_of(net)).plan
    (question,) = plan.ambiguities
    assert question.id == "transposed" and "pooler.dense.weight" in question.question and not plan.complete
    yes = diagnose(file_of(turned(net)), target_of(net), choose={"transposed": "transposed"}).plan
    assert yes.complete and "pooler.dense.weight" in permuted(yes)
    no = diagnose(file_of(turned(net)), target_of(net), choose={"transposed": "as-it-is"}).plan
    assert no.complete and "pooler.dense.weight" not in permuted(no)


def test_neighbours_of_two_minds_decide_nothing(file_of, target_of):
    net = block()
    ours = {n: s[::-1] if "fc1" in n and len(s) == 2 else s for n, s in net.items()}
    plan = diagnose(file_of(ours), target_of(net)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed", "transposed-parts"]
    answers = {"transposed": "as-it-is", "transposed-parts": "as-it-is"}
    plan = diagnose(file_of(ours), target_of(net), choose=answers).plan
    assert plan.complete and permuted(plan) == {"blocks.0.mlp.fc1.weight"}
    flat = {"fc1.weight": (9, 4), "fc1.bias": (9,), "fc2.weight": (4, 4), "fc3.weight": (2, 4)}
    plan = diagnose(file_of(flat | {"fc1.weight": (4, 9)}), target_of(flat)).plan
    assert [q.id for q in plan.ambiguities] == ["transposed"]


def test_without_a_bias_nothing_says_which_size_is_the_output(file_of, target_of):
    plan = diagnose(file_of({"enc.weight": (4, 9)}), target_of({"enc.weight": (9, 4)})).plan
    assert [q.id for q in plan.ambiguities] == ["transposed-shapes"] and not plan.complete
    # What is answered about shapes that show it says nothing of a square one.
    goal = {"enc.weight": (9, 4), "gate.weight": (4, 4)}
    answers = {"transposed-shapes": "transposed"}
    plan = diagnose(file_of(goal | {"enc.weight": (4, 9)}), target_of(goal), choose=answers).plan
    assert [q.id for q in plan.ambiguities] == ["transposed"] and not plan.complete


def test_another_network_is_not_transposed_into_this_one(file_of, target_of):
    # The encoder of one auto-encoder against the decoder of another: the biases contradict.
    report = diagnose(
        file_of({"fc.weight": (4, 9), "fc.bias": (4,)}), target_of({"fc.weight": (9, 4), "fc.bias": (9,)})
    )
    assert report.plan is None or not report.plan.complete


def test_healthy_and_square_files_are_untouched(file_of, target_of):
    net = block() | {"pooler.weight": (4, 4)}
    assert diagnose(file_of(net), target_of(net)).plan.rules == ()


def test_file_code_and_proof_agree_bit_for_bit(tmp_path, target_of, monkeypatch):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 3))
    goal = target_of({n: tuple(t.shape) for n, t in model.state_dict().items()})
    torch.save(
        {n: t.t().contiguous() if t.dim() == 2 else t for n, t in model.state_dict().items()}, tmp_path / "a.pth"
    )
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    assert not diagnose(checkpoint, goal).plan.complete  # 1.weight is square
    plan = diagnose(checkpoint, goal, choose={"transposed": "transposed"}).plan
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[n], t) for n, t in model.state_dict().items())
    assert verify_plan(checkpoint, plan, goal).holds
    fresh = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 3))
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": fresh})
    assert all(torch.equal(fresh.state_dict()[n], t) for n, t in model.state_dict().items())


def test_a_block_of_square_matrices_does_not_look_into_other_blocks(file_of, target_of):
    net = conv1d(0) | {"h.1.attn.proj.weight": (4, 4), "h.1.attn.proj.bias": (4,)}
    plan = diagnose(file_of(turned(net)), target_of(net)).plan
    (question,) = plan.ambiguities
    assert "h.1.attn.proj.weight" in question.question and not plan.complete


@pytest.mark.parametrize("names", [{"weight": "kernel"}, {"weight": "w", "bias": "b"}])
def test_a_kernel_that_is_square_is_asked_about_when_every_one_is(names, file_of, target_of):
    goal = {f"{m}.{leaf}": s for m in ("a", "b") for leaf, s in (("weight", (4, 4)), ("bias", (4,)))}
    ours = {f"{m}.{names.get(leaf, leaf)}": s for (m, leaf), s in ((n.split("."), s) for n, s in goal.items())}
    waiting = diagnose(file_of(ours), target_of(goal)).plan
    assert not waiting.complete and [q.id for q in waiting.ambiguities] == ["transposed"]
    turned = diagnose(file_of(ours), target_of(goal), choose={"transposed": "transposed"}).plan
    assert turned.complete and permuted(turned) == {"a.weight", "b.weight"}
    # One that shows it speaks for all of its name, and for no other.
    more = goal | {"c.weight": (5, 4), "c.bias": (5,), "d.weight": (4, 4)}
    ours |= {f"c.{names['weight']}": (4, 5), f"c.{names.get('bias', 'bias')}": (5,), "d.weight": (4, 4)}
    plan = diagnose(file_of(ours), target_of(more), choose={"transposed": "as-it-is"}).plan
    assert plan.complete and permuted(plan) == {"a.weight", "b.weight", "c.weight"}


@pytest.mark.parametrize("marks", [("_mean", "_variance"), ("moving_mean", "moving_variance")])
def test_a_square_weight_beside_another_librarys_statistics_is_asked_about(marks, file_of, target_of):
    norm = {f"bn.{leaf}": (4,) for leaf in ("weight", "bias")}
    goal = {"fc.weight": (4, 4)} | norm | {"bn.running_mean": (4,), "bn.running_var": (4,)}
    ours = {"fc.weight": (4, 4)} | norm | {f"bn.{mark}": (4,) for mark in marks}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan is None or not plan.complete
    same = diagnose(file_of(ours), target_of(ours)).plan
    assert same.complete and not same.ambiguities  # the target is of that library, too


def test_a_kernel_of_torchs_shape_takes_the_word_from_its_librarys_names(file_of, target_of):
    """Square matrices were turned since their names were Keras's, beside a kernel that lies as torch has it."""
    goal = {"fc.weight": (4, 4), "fc.bias": (4,), "bn.weight": (4,), "bn.bias": (4,), "a.weight": (8, 3, 2, 2)}
    ours = {"fc.kernel": (4, 4), "fc.bias": (4,), "bn.gamma": (4,), "bn.beta": (4,)}
    alone = diagnose(file_of(ours), target_of({n: s for n, s in goal.items() if n != "a.weight"})).plan
    assert alone.complete and permuted(alone) == {"fc.weight"}
    plan = diagnose(file_of(ours | {"a.kernel": (8, 3, 2, 2)}), target_of(goal)).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["transposed"]


@pytest.mark.parametrize("spelling", ["{}", "net/{}", "{}:0", "params/{}"])
@pytest.mark.parametrize("oblong", [None, False, True])
def test_square_weights_under_paths_are_told_by_the_others_or_asked_about(spelling, oblong, file_of, target_of):
    """dense/weight of a framework that stores (in, out), as Paddle's: nothing but other matrices tells how it lies."""
    goal = {f"fc{n}.{own}": shape for n in (1, 2) for own, shape in (("weight", (12, 12)), ("bias", (12,)))}
    if oblong is not None:
        goal |= {"out.weight": (3, 12), "out.bias": (3,)}
    file = {spelling.format(name.replace(".", "/")): shape for name, shape in goal.items()}
    if oblong:
        file = {name: (12, 3) if shape == (3, 12) else shape for name, shape in file.items()}
    report = diagnose(file_of(file), target_of(goal))
    asked = [question.id for question in report.plan.ambiguities]
    assert asked == ([] if oblong is False else ["transposed"])
    if asked:
        done = diagnose(file_of(file), target_of(goal), choose={"transposed": "transposed"}).plan
        assert done.complete and {s.target for s in done.steps if s.axes == (1, 0)} >= {"fc1.weight", "fc2.weight"}


@pytest.mark.parametrize("bare", ["proj", "W", "kernel", "in_proj"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_square_layer_that_becomes_a_parameter_of_its_own_is_asked_about(bare, backwards, saved, target_of):
    """nn.Linear multiplies by its weight turned round, `x @ proj` does not."""
    rest = {"fc.weight": (9, 4), "fc.bias": (9,)}
    inside = f"proj.{bare}" if bare in ("W", "kernel") else bare
    sides = rest | {f"{bare if bare == inside else 'proj'}.weight": (6, 6)}, rest | {inside: (6, 6)}
    ours, theirs = reversed(sides) if backwards else sides
    checkpoint = saved({name: torch.randn(shape) for name, shape in ours.items()})
    report = diagnose(checkpoint, target_of(theirs))
    answers = {}
    for question, answer in (("related-names", "same"), ("transposed", "transposed")):
        assert not report.plan.complete
        answers |= {question: answer} if question in [q.id for q in report.plan.ambiguities] else {}
        report = diagnose(checkpoint, target_of(theirs), choose=answers)
    assert "transposed" in answers
    plan = diagnose(checkpoint, target_of(theirs), choose=answers).plan
    place = (set(theirs) - set(rest)).pop()
    assert plan.complete and permuted(plan) == {place}


def test_a_layers_weight_among_others_whose_shapes_tell_is_not_asked_about(file_of, target_of):
    ours = {"a.proj.weight": (9, 4), "b.proj.weight": (6, 6)}
    plan = diagnose(file_of(ours), target_of({"a.proj": (9, 4), "b.proj": (6, 6)})).plan
    assert "transposed" not in [q.id for q in plan.ambiguities] and not permuted(plan)


def test_a_weight_that_leaves_its_bias_is_asked_about(file_of, target_of):
    """PyG's graph convolutions: a parameter (in, out) beside the bias, a linear layer without one since 2.0."""
    ours = {f"conv{i}.{leaf}": shape for i in (1, 2) for leaf, shape in (("weight", (8, 8)), ("bias", (8,)))}
    theirs = {n.replace(".weight", ".lin.weight"): s for n, s in ours.items()}
    report = diagnose(file_of(ours), target_of(theirs), accept=["same-order"])
    assert [q.id for q in report.plan.ambiguities] == ["transposed"]
    plan = diagnose(file_of(ours), target_of(theirs), accept=["same-order"], choose={"transposed": "transposed"}).plan
    assert plan.complete and permuted(plan) == {n for n in theirs if n.endswith("weight")}
    # With its bias it is the layer itself, one level deeper.
    whole = {n.replace(".", ".lin."): s for n, s in ours.items()}
    assert diagnose(file_of(ours), target_of(whole)).plan.complete


def test_a_weight_of_the_turned_shape_is_offered_as_the_one_that_is_missing(file_of, target_of):
    ours = {"conv1.weight": (5, 8), "conv1.bias": (8,), "conv2.weight": (8, 3), "conv2.bias": (3,)}
    theirs = {n.replace(".weight", ".lin.weight"): s[::-1] for n, s in ours.items()}
    same = {"related-names": "same", "transposed-shapes": "transposed"}
    plan = diagnose(file_of(ours), target_of(theirs), choose=same).plan
    assert plan.complete and permuted(plan) == {"conv1.lin.weight", "conv2.lin.weight"}
