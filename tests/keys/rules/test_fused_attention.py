"""Query, key and value joined and taken apart, bit for bit, in the order that is proved or told."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Step, StepKind, used_sources
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

IN_ORDER = {"qkv-order": "q-k-v"}


def fused(seed=0):
    torch.manual_seed(seed)
    state = {"stem.weight": torch.randn(4, 3)}
    for i in range(2):
        state |= {f"blocks.{i}.attn.{n}": t for n, t in nn.MultiheadAttention(4, 2).state_dict().items()}
        state[f"blocks.{i}.attn.in_proj_bias"] = torch.randn(12)
    return state


def apart(state, names=("q_proj", "k_proj", "v_proj")):
    made = {}
    for name, tensor in state.items():
        stem, is_fused, leaf = name.partition("in_proj_")
        # The value first: names decide, not the order of the file.
        parts = dict(zip(names, tensor.chunk(3), strict=True)) if is_fused else {}
        made |= (
            {f"{stem}{part}.{leaf}": parts[part].clone() for part in reversed(names)} if is_fused else {name: tensor}
        )
    return made


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


TRIPLES = [("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("q", "k", "v"), ("wq", "wk", "wv")]


def right(checkpoint, plan, goal, tmp_path, monkeypatch):
    """The applied plan and the printed code both give these numbers, and the proof of the bytes holds."""
    made = apply_plan(checkpoint, plan)
    assert list(made) == list(goal) and all(torch.equal(made[n], t) for n, t in goal.items())
    assert verify_plan(checkpoint, plan, target_like(goal)).holds
    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert set(model.held) == set(goal) and all(torch.equal(model.held[n], t) for n, t in goal.items())


def target_like(state):
    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape), dtype="float32") for n, t in state.items())
    return Target(label="the target", kind=TargetKind.FILE, tensors=tensors)


def opened(state, tmp_path):
    torch.save(state, tmp_path / "a.pth")
    return open_checkpoint(tmp_path / "a.pth")


@pytest.mark.parametrize("names", TRIPLES)
@pytest.mark.parametrize("prefix", ["", "module."])
def test_parts_of_the_file_fill_torchs_attention_unasked(names, prefix, tmp_path, monkeypatch):
    whole = fused()
    checkpoint = opened({prefix + n: t for n, t in apart(whole, names).items()}, tmp_path)
    report = diagnose(checkpoint, target_like(whole))
    assert report.plan.complete and not [f for f in report.findings if f.id == "cannot-tell"]
    right(checkpoint, report.plan, whole, tmp_path, monkeypatch)


@pytest.mark.parametrize("names", TRIPLES)
@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_whole_of_the_file_is_taken_apart_as_the_user_says(names, prefix, tmp_path, monkeypatch):
    """As in apex, whose in_proj_weight is head by head, and has a bare out_proj_weight beside it."""
    whole = {n.replace("out_proj.", "out_proj_"): t for n, t in fused().items()}
    goal = apart(whole, names)
    checkpoint = opened({prefix + n: t for n, t in whole.items()}, tmp_path)
    waiting = diagnose(checkpoint, target_like(goal)).plan
    assert [q.id for q in waiting.ambiguities] == ["qkv-order"] and not waiting.complete
    assert waiting.ambiguities[0].options[0][0] == "q-k-v" and len(waiting.ambiguities[0].options) == 9
    plan = diagnose(checkpoint, target_like(goal), choose=IN_ORDER).plan
    assert plan.complete
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


def test_every_number_of_heads_of_768_rows_can_be_the_answer_and_that_it_is_none_of_them(tmp_path):
    """Four heads of 192 rows are usual nowhere, and were no option: each that was offered was wrong."""
    whole = {"blocks.0.attn.in_proj.weight": torch.randn(2304, 8), "blocks.0.norm1.weight": torch.rand(8)}
    goal = {f"blocks.0.attn.{n}_proj.weight": torch.empty(768, 8) for n in "qkv"} | {
        "blocks.0.norm1.weight": whole["blocks.0.norm1.weight"]
    }
    checkpoint = opened(whole, tmp_path)
    (question,) = diagnose(checkpoint, target_like(goal)).plan.ambiguities
    offered = {option for option, _ in question.options}
    assert {f"{n}-heads" for n in range(2, 385) if 768 % n == 0} <= offered
    plan = diagnose(checkpoint, target_like(goal), choose={"qkv-order": "otherwise"}).plan
    assert plan is None or (not plan.complete and not any(s.target in goal and "attn" in s.target for s in plan.steps))


@pytest.mark.parametrize("names", TRIPLES)
@pytest.mark.parametrize("prefix", ["", "module."])
def test_torchs_attention_in_the_file_is_taken_apart_unasked(names, prefix, tmp_path, monkeypatch):
    whole = fused()
    goal = apart(whole, names)
    checkpoint = opened({prefix + n: t for n, t in whole.items()}, tmp_path)
    plan = diagnose(checkpoint, target_like(goal)).plan
    assert plan.complete
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


def test_whoever_knows_another_order_than_the_names_prove_is_believed(tmp_path):
    whole = fused()
    goal = apart(whole)
    checkpoint = opened(whole, tmp_path)
    for ident in ("qkv-order", "qkv-order:blocks.N.attn.in_proj"):
        plan = diagnose(checkpoint, target_like(goal), choose={ident: "k-v-q"}).plan
        made = apply_plan(checkpoint, plan)
        for i in range(2):
            thirds = whole[f"blocks.{i}.attn.in_proj_weight"].chunk(3)
            held = [made[f"blocks.{i}.attn.{n}.weight"] for n in ("k_proj", "v_proj", "q_proj")]
            assert plan.complete and all(torch.equal(a, b) for a, b in zip(held, thirds, strict=True))


VIT = {"patch_embed.proj.weight": (4, 3, 2, 2), "blocks.0.norm1.weight": (4,), "blocks.0.mlp.fc1.weight": (16, 4)}
PHI = {"layers.0.mlp.gate_up_proj.weight": (16, 4), "layers.0.input_layernorm.weight": (4,)}
# (the whole, what lies beside it, rows of query, key, value, whether names prove the order: of a file's, of a target's)
PROVED = [
    ("blocks.0.attn.qkv", VIT | {"blocks.0.attn.proj.weight": (4, 4)}, (4, 4, 4), True, True),
    ("layers.0.self_attn.qkv_proj", PHI, (4, 2, 2), True, True),
    ("layers.0.self_attn.qkv_proj", PHI, (4, 4, 4), True, True),
    ("layers.0.self_attn.qkv_proj", {"layers.0.self_attn.o_proj.weight": (4, 4)}, (4, 2, 2), True, True),
    ("layers.0.fn.to_qkv", {"layers.0.fn.to_out.0.weight": (4, 4)}, (4, 4, 4), True, True),
    ("layers.0.fn.to_qkv", {"layers.0.fn.proj.weight": (4, 4)}, (4, 4, 4), False, False),
    ("layers.0.mixer.Wqkv", {"layers.0.mixer.out_proj.weight": (4, 4)}, (4, 4, 4), True, True),
    ("layers.0.attn.Wqkv", {"layers.0.attn.Wo.weight": (4, 4)}, (4, 4, 4), True, True),
    ("layers.0.attn.Wqkv", {"layers.0.attn.out_proj.weight": (4, 4)}, (4, 4, 4), False, False),
    # The same of equal parts is head by head in a tutorial, and in OPT's own files key, value, query.
    ("layers.0.self_attn.qkv_proj", {"layers.0.self_attn.o_proj.weight": (4, 4)}, (4, 4, 4), False, False),
    ("layers.0.self_attn.qkv_proj", {"layers.0.self_attn.out_proj.weight": (4, 4)}, (4, 4, 4), False, False),
    ("layers.0.self_attn.qkv_proj", {"layers.0.self_attn.out_proj.weight": (4, 4)}, (4, 2, 2), False, False),
    # InternLM2's is in groups of heads, NeoX's head by head.
    ("layers.0.attention.wqkv", {"layers.0.attention.wo.weight": (4, 4)}, (4, 2, 2), False, False),
    ("layers.0.attention.query_key_value", {"layers.0.attention.dense.weight": (4, 4)}, (4, 4, 4), False, False),
    # Blocks named as timm's in a network of somebody's own.
    ("blocks.0.attn.qkv", {"blocks.0.attn.proj.weight": (4, 4), "norm.weight": (4,)}, (4, 4, 4), False, False),
]


@pytest.mark.parametrize(("whole", "beside", "rows", "in_file", "in_target"), PROVED)
def test_names_of_a_library_prove_the_order_and_others_do_not(
    whole, beside, rows, in_file, in_target, file_of, target_of
):
    parent = whole.rpartition(".")[0]
    one = {f"{whole}.weight": (sum(rows), 4)} | beside
    three = {f"{parent}.{n}.weight": (r, 4) for n, r in zip(TRIPLES[0], rows, strict=True)} | beside
    for ours, goal, proved in ((one, three, in_file), (three, one, in_target)):
        plan = diagnose(file_of(ours), target_of(goal)).plan
        asked = [q.id for q in plan.ambiguities]
        assert asked == ([] if proved else ["qkv-order"]) and plan.complete is proved


def laid(parts, order, heads=2):
    """One matrix of query, key and value, by the arithmetic of the codes that have it so."""
    if order == "row-by-row":  # Megatron's checkpoint_version 1: view(heads, size, 3)
        return torch.stack(parts, 1).flatten(0, 1)
    if order.endswith("heads"):  # GPT-NeoX: view(heads, 3 * size)
        return torch.cat([p.reshape(heads, -1, *p.shape[1:]) for p in parts], 1).flatten(0, 1)
    return torch.cat([parts["qkv".index(letter)] for letter in order.split("-")])


ORDERS = ["q-k-v", "k-q-v", "k-v-q", "q-v-k", "v-q-k", "2-heads", "row-by-row"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("name", ["query_key_value", "qkv_proj", "kqv", "W_pack"])
def test_every_order_is_an_answer(order, joined, name, tmp_path, monkeypatch):
    torch.manual_seed(1)
    three = {"norm.weight": torch.randn(4)}
    one = dict(three)
    for i in range(2):
        for leaf, columns in (("weight", (4,)), ("bias", ())):
            parts = [torch.randn(4, *columns) for _ in "qkv"]
            three |= {f"h.{i}.attn.{n}.{leaf}": p for n, p in zip(TRIPLES[0], parts, strict=True)}
            one[f"h.{i}.attn.{name}.{leaf}"] = laid(parts, order)
    ours, goal = (three, one) if joined else (one, three)
    checkpoint = opened(ours, tmp_path)
    waiting = diagnose(checkpoint, target_like(goal)).plan
    (question,) = waiting.ambiguities
    assert not waiting.complete and question.options[0][0] == ("k-q-v" if name == "kqv" else "q-k-v")
    plan = diagnose(checkpoint, target_like(goal), choose={"qkv-order": order}).plan
    right(checkpoint, plan, goal, tmp_path, monkeypatch)
    wrong = apply_plan(checkpoint, diagnose(checkpoint, target_like(goal), choose={"qkv-order": "v-k-q"}).plan)
    assert not all(torch.equal(wrong[n], t) for n, t in goal.items())


@pytest.mark.parametrize("joined", [True, False])
def test_gpt2s_columns_become_linear_layers(joined, tmp_path, monkeypatch):
    """transformers' Conv1D: c_attn is (in, 3 in), and its columns are query, key, value. Nothing is left to ask."""
    torch.manual_seed(2)
    three, one = {}, {}
    for i in range(2):
        at = f"transformer.h.{i}"
        parts = [torch.randn(4, 4) for _ in "qkv"]
        three |= {f"{at}.attn.{n}.weight": p for n, p in zip(TRIPLES[0], parts, strict=True)}
        one[f"{at}.attn.c_attn.weight"] = torch.cat(parts).t().contiguous()
        up = torch.randn(8, 4)
        three[f"{at}.mlp.c_fc.weight"], one[f"{at}.mlp.c_fc.weight"] = up, up.t().contiguous()
        three[f"{at}.mlp.c_fc.bias"] = one[f"{at}.mlp.c_fc.bias"] = torch.randn(8)
    ours, goal = (three, one) if joined else (one, three)
    checkpoint = opened(ours, tmp_path)
    plan = diagnose(checkpoint, target_like(goal)).plan
    assert plan.complete
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("order", ["q-k-v", "2-heads"])
def test_more_queries_than_keys(joined, order, tmp_path, monkeypatch):
    torch.manual_seed(3)
    parts = [torch.randn(8, 6), torch.randn(4, 6), torch.randn(4, 6)]
    rest = {"norm.weight": torch.randn(6)}
    three = rest | {f"a.{n}.weight": p for n, p in zip(TRIPLES[0], parts, strict=True)}
    one = rest | {"a.qkv_proj.weight": laid(parts, order)}
    ours, goal = (three, one) if joined else (one, three)
    checkpoint = opened(ours, tmp_path)
    assert diagnose(checkpoint, target_like(goal)).plan.ambiguities
    plan = diagnose(checkpoint, target_like(goal), choose={"qkv-order": order}).plan
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("order", ["k-v", "v-k"])
def test_key_and_value_in_one(joined, order, tmp_path, monkeypatch):
    torch.manual_seed(4)
    q, k, v = (torch.randn(4, 6) for _ in "qkv")
    three = {"a.to_q.weight": q, "a.to_k.weight": k, "a.to_v.weight": v, "norm.weight": torch.randn(6)}
    halves = [k, v] if order == "k-v" else [v, k]
    one = {"a.to_q.weight": q, "a.to_kv.weight": torch.cat(halves), "norm.weight": three["norm.weight"]}
    ours, goal = (three, one) if joined else (one, three)
    checkpoint = opened(ours, tmp_path)
    plan = diagnose(checkpoint, target_like(goal), choose={"kv-order": order}).plan
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


def test_two_attentions_of_a_layer_are_asked_about_by_their_places(tmp_path):
    torch.manual_seed(5)
    net = {"norm.weight": torch.randn(4)}
    for name in ("self_attn", "cross_attn"):
        net |= {f"h.{i}.{name}.{n}.weight": torch.randn(4, 4) for i in range(2) for n in TRIPLES[0]}
    one = {"norm.weight": net["norm.weight"]}
    for name, order in (("self_attn", (0, 1, 2)), ("cross_attn", (1, 2, 0))):
        for i in range(2):
            parts = [net[f"h.{i}.{name}.{n}.weight"] for n in TRIPLES[0]]
            one[f"h.{i}.{name}.qkv.weight"] = torch.cat([parts[k] for k in order])
    checkpoint = opened(one, tmp_path)
    (question,) = diagnose(checkpoint, target_like(net)).plan.ambiguities
    assert question.places == ("h.N.self_attn.qkv", "h.N.cross_attn.qkv")
    choose = {"qkv-order:h.N.self_attn.qkv": "q-k-v", "qkv-order:h.N.cross_attn.qkv": "k-v-q"}
    made = apply_plan(checkpoint, diagnose(checkpoint, target_like(net), choose=choose).plan)
    assert all(torch.equal(made[n], t) for n, t in net.items())


def test_a_wrong_join_is_caught_by_the_bytes(saved, target_of):
    whole = fused()
    checkpoint, target = saved(apart(whole)), target_of(shapes(whole))
    plan = diagnose(checkpoint, target).plan
    held = apply_plan(checkpoint, plan)
    from tests.raw import prove_bytes

    assert prove_bytes(checkpoint, plan, held).passed
    name = "blocks.1.attn.in_proj_weight"
    held[name] = held[name].roll(4, 0)
    assert prove_bytes(checkpoint, plan, held).passed is False


def test_incomplete_or_uneven_or_other_sizes_are_left_alone(file_of, target_of):
    whole = {"a.out.weight": (4, 4), "a.qkv.weight": (12, 4)}
    three = {"a.out.weight": (4, 4)} | {f"a.{n}.weight": (4, 4) for n in "qkv"}
    assert diagnose(file_of(three), target_of(whole), choose=IN_ORDER).plan.complete
    for ours, goal in (
        ({n: s for n, s in three.items() if n != "a.k.weight"}, whole),
        (three | {"a.k.weight": (2, 4)}, whole),
        (three, {"a.out.weight": (4, 4), "b.other.weight": (12, 4)}),
        (three | {"a.qkv.weight": (12, 4)}, whole | {"a.more.weight": (4, 4)}),
    ):
        plan = diagnose(file_of(ours), target_of(goal), accept=("extra-tensors",)).plan
        assert plan is None or not plan.complete
        assert plan is None or "fused-attention" not in [use.id for use in plan.rules]


def test_rows_that_leave_a_gap_are_no_whole_use():
    def cut(*rows):
        return [
            Step(kind=StepKind.SPLIT, source="w", target=str(i), rule="", reason="", cost="", evidence="", rows=r)
            for i, r in enumerate(rows)
        ]

    assert used_sources(cut((0, 4), (4, 8))) == ["w"]
    assert len(used_sources(cut((0, 4), (5, 8)))) > 1 and len(used_sources(cut((0, 4), (0, 4)))) > 1


def test_both_sides_alike_are_untouched(file_of, target_of):
    for net in (shapes(fused()), shapes(apart(fused()))):
        assert diagnose(file_of(net), target_of(net)).plan.rules == ()


def test_square_matrices_of_a_turned_file_are_asked_about(tmp_path, monkeypatch):
    """No shape shows that query, key and value are the other way round; the layer beside them says they may be."""
    torch.manual_seed(6)
    parts = [torch.randn(4, 4) for _ in "qkv"]
    out, up, bias = torch.randn(4, 4), torch.randn(8, 4), torch.randn(8)
    goal = {"attn.in_proj_weight": torch.cat(parts), "attn.out_proj.weight": out, "mlp.fc1.weight": up}
    goal |= {"mlp.fc1.bias": bias}
    names = [f"attn.{n}.weight" for n in ("q_proj", "k_proj", "v_proj")]
    ours = {n: p.t().contiguous() for n, p in zip(names, parts, strict=True)}
    ours |= {"attn.out_proj.weight": out.t().contiguous(), "mlp.fc1.weight": up.t().contiguous(), "mlp.fc1.bias": bias}
    checkpoint = opened(ours, tmp_path)
    waiting = diagnose(checkpoint, target_like(goal)).plan
    assert [q.id for q in waiting.ambiguities] == ["transposed"] and not waiting.complete
    plan = diagnose(checkpoint, target_like(goal), choose={"transposed": "transposed"}).plan
    assert plan.complete
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


def test_square_matrices_beside_a_turned_whole_are_asked_about(tmp_path, monkeypatch):
    """The whole's shape shows that it lies (in, out); its neighbours may, too, and each loads."""
    torch.manual_seed(6)
    parts = [torch.randn(4, 4) for _ in "qkv"]
    out = torch.randn(4, 4)
    goal = {f"attn.{n}_proj.weight": p for n, p in zip("qkvo", [*parts, out], strict=True)}
    checkpoint = opened({"attn.qkv.weight": torch.cat(parts).t().contiguous(), "attn.o_proj.weight": out.t()}, tmp_path)
    waiting = diagnose(checkpoint, target_like(goal), choose={"qkv-order": "q-k-v"}).plan
    assert [q.id for q in waiting.ambiguities] == ["transposed"] and not waiting.complete
    plan = diagnose(checkpoint, target_like(goal), choose={"qkv-order": "q-k-v", "transposed": "transposed"}).plan
    right(checkpoint, plan, goal, tmp_path, monkeypatch)


def test_a_square_whole_of_a_turned_file_is_not_taken_apart(file_of, target_of):
    rest = {"mlp.fc1.weight": (12, 4), "mlp.fc1.bias": (12,), "attn.proj.weight": (4, 12)}
    goal = {f"attn.{n}.weight": (4, 12) for n in ("q_proj", "k_proj", "v_proj")} | rest
    one = {"attn.qkv.weight": (12, 12)}
    turned = file_of(one | rest | {"mlp.fc1.weight": (4, 12), "attn.proj.weight": (12, 4)})
    assert not diagnose(turned, target_of(goal), choose=IN_ORDER).plan.complete
    assert diagnose(file_of(one | rest), target_of(goal), choose=IN_ORDER).plan.complete
