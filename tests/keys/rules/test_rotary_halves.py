"""Meta's names into Hugging Face's: rows of queries and keys are permuted as transformers' converter does, or asked."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch import nn

from inspector.architectures.targets import parse_target
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

META, HUGGING = "layers.{}.attention.w{}.{}", "model.layers.{}.self_attn.{}_proj.{}"
OWN, GGUF = "model.layers.{}.attention.{}_proj.{}", "blk.{}.attn_{}.{}"
TUNE = "layers.{}.attn.{}_proj.{}"
HEADS, KV_HEADS, SIZE, WIDTH = 4, 2, 6, 20


def attention(names, bias=True):
    """Random q, k, v and o of two layers, of other sizes each so that names and shapes place them."""
    torch.manual_seed(0)
    rows = {"q": HEADS * SIZE, "k": KV_HEADS * SIZE}
    made = {}
    for layer in range(2):
        for part, n in rows.items():
            made[names.format(layer, part, "weight")] = torch.randn(n, WIDTH + layer)
            if bias:
                made[names.format(layer, part, "bias")] = torch.randn(n)
    return made


def permuted(tensor, *, back=False):
    """Written out row by row: in each head, row 2 i + j of the pairs is row j * SIZE/2 + i of the halves."""
    array = tensor.numpy()
    made = numpy.empty_like(array)
    for head in range(len(array) // SIZE):
        for i in range(SIZE // 2):
            for j in range(2):
                pair, half = head * SIZE + 2 * i + j, head * SIZE + j * (SIZE // 2) + i
                made[pair if back else half] = array[half if back else pair]
    return torch.from_numpy(made)


def opened(tmp_path, state):
    torch.save(state, tmp_path / "a.pth")
    return open_checkpoint(tmp_path / "a.pth")


@pytest.mark.parametrize(
    ("ours", "theirs", "back"),
    [
        (META, HUGGING, False),
        (HUGGING, META, True),
        (TUNE, HUGGING, False),
        (META, OWN, False),
        (GGUF, HUGGING, False),
        (HUGGING, GGUF, True),
        (GGUF, TUNE, False),
    ],
)
def test_queries_and_keys_are_not_written_without_the_rotary_permutation(ours, theirs, back, tmp_path, target_of):
    file = attention(ours)
    names = dict(zip(file, attention(theirs), strict=True))
    checkpoint = opened(tmp_path, file)
    goal = target_of({names[n]: tuple(t.shape) for n, t in file.items()})
    accept = ["same-order"]
    # What names and order leave open comes first.
    asked = {q.id for q in diagnose(checkpoint, goal, accept=accept).plan.ambiguities}
    answers = {key: said for key, said in {"symmetric": "in-order", "rename": "as-placed"}.items() if key in asked}
    waiting = diagnose(checkpoint, goal, accept=accept, choose=answers)
    (question,) = waiting.plan.ambiguities
    assert question.id == "rotary-halves" and not waiting.plan.complete and "Lossless" not in waiting.says
    assert "heads-of-6" in dict(question.options)
    report = diagnose(checkpoint, goal, accept=accept, choose=answers | {"rotary-halves": "heads-of-6"})
    assert report.plan.complete and verify_plan(checkpoint, report.plan, goal).holds
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[names[n]], permuted(t, back=back)) for n, t in file.items())
    kept = diagnose(checkpoint, goal, accept=accept, choose=answers | {"rotary-halves": "as-it-is"})
    assert kept.plan.complete
    assert all(torch.equal(apply_plan(checkpoint, kept.plan)[names[n]], t) for n, t in file.items())


def test_the_exported_code_does_the_same(tmp_path, target_of, monkeypatch):
    class Holder(nn.Module):
        def __init__(self, shapes):
            super().__init__()
            for name, shape in shapes.items():
                *path, leaf = name.split(".")
                node = self
                for part in path:
                    if part not in node._modules:
                        node.add_module(part, nn.Module())
                    node = node._modules[part]
                node.register_parameter(leaf, nn.Parameter(torch.zeros(shape)))

    file = attention(META)
    names = dict(zip(file, attention(HUGGING), strict=True))
    checkpoint = opened(tmp_path, file)
    shapes = {names[n]: tuple(t.shape) for n, t in file.items()}
    choose = {"rotary-halves": "heads-of-6"}
    report = diagnose(checkpoint, target_of(shapes), accept=["same-order"], choose=choose)
    if report.plan.ambiguities:
        choose["symmetric"] = "in-order"
        report = diagnose(checkpoint, target_of(shapes), accept=["same-order"], choose=choose)
    model = Holder(shapes)
    monkeypatch.chdir(tmp_path)
    exec(python_code(report.plan, file_name="a.pth"), {"model": model})
    assert all(torch.equal(model.state_dict()[names[n]], permuted(t)) for n, t in file.items())


def test_the_frequencies_in_the_file_tell_the_size_of_a_head(file_of, target_of):
    shapes = {n: tuple(t.shape) for n, t in attention(META, bias=False).items()}
    names = dict(zip(shapes, attention(HUGGING, bias=False), strict=True))
    ours = shapes | {"layers.0.attention.inner_attention.rope.freqs": (SIZE // 2,)}
    goal = target_of({names[n]: s for n, s in shapes.items()} | {"model.rope.freqs": (SIZE // 2,)})
    report = diagnose(file_of(ours), goal, accept=["same-order"])
    options = (
        next((dict(q.options) for q in report.plan.ambiguities if q.id == "rotary-halves"), {}) if report.plan else {}
    )
    assert not options or list(options) == ["heads-of-6", "as-it-is"]


def test_both_codes_proved_and_the_size_told_leave_nothing_to_ask(tmp_path):
    def side(names, embedding, norm, gate):
        made = attention(names, bias=False) | {embedding: torch.randn(9, WIDTH)}
        return made | {
            f"{start}.{i}.{name}.weight": torch.randn(n, WIDTH + i)
            for i in range(2)
            for start, name, n in ((norm[0], norm[1], 3), (gate[0], gate[1], 31))
        }

    ours = side(META, "tok_embeddings.weight", ("layers", "attention_norm"), ("layers", "feed_forward.w1"))
    theirs = side(
        HUGGING, "model.embed_tokens.weight", ("model.layers", "input_layernorm"), ("model.layers", "mlp.gate_proj")
    )
    names = dict(zip(ours, theirs, strict=True))

    def diagnosed(more, goal_has):
        """With every question answered but for the rotary one."""
        torch.save(theirs | goal_has, tmp_path / "b.pth")
        goal = parse_target(f"file:{tmp_path / 'b.pth'}", open_file=open_checkpoint)
        checkpoint, answers = opened(tmp_path, ours | more), {}
        for _ in range(4):
            report = diagnose(checkpoint, goal, accept=["same-order", "extra-tensors"], choose=answers)
            rest = [q for q in report.plan.ambiguities if q.id != "rotary-halves"]
            answers |= {q.id: {"symmetric": "in-order", "other-words": "same"}.get(q.id, "as-placed") for q in rest}
        return checkpoint, report

    _, waiting = diagnosed({}, {})
    assert [q.id for q in waiting.plan.ambiguities] == ["rotary-halves"]
    checkpoint, report = diagnosed(*[{f"{start}rope.freqs": torch.ones(SIZE // 2)} for start in ("", "model.")])
    assert not report.plan.ambiguities
    made = apply_plan(checkpoint, report.plan)
    turned = [n for n in ours if ".attention.w" in n]
    assert len(turned) == 4 and all(torch.equal(made[names[n]], permuted(ours[n])) for n in turned)


def test_names_of_one_library_are_no_question(file_of, target_of):
    for names in (META, HUGGING, TUNE):
        shapes = {n: tuple(t.shape) for n, t in attention(names).items()}
        plan = diagnose(file_of({f"module.{n}": s for n, s in shapes.items()}), target_of(shapes)).plan
        assert plan.complete and not plan.ambiguities


@pytest.mark.parametrize("square", [False, True])
def test_rows_of_a_matrix_that_lies_the_other_way_round_are_permuted_as_well(square, tmp_path, target_of, monkeypatch):
    """One step makes a tensor: whoever turned it had left the rows as they were, in silence."""
    shape = (HEADS * SIZE, HEADS * SIZE if square else WIDTH)
    weights = {n: torch.randn(shape) for n in ("q", "k")} | {"head": torch.randn(5, WIDTH)}
    file = {META.format(0, n, "weight"): weights[n].t().contiguous() for n in ("q", "k")}
    file |= {"head.weight": weights["head"].t().contiguous(), "head.bias": torch.zeros(5)}
    names = {n: HUGGING.format(0, n, "weight") for n in ("q", "k")}
    goal = target_of({names[n]: shape for n in names} | {"head.weight": (5, WIDTH), "head.bias": (5,)})
    checkpoint = opened(tmp_path, file)
    known = {"rotary-halves": f"heads-of-{SIZE}", "transposed": "transposed", "rename": "as-placed"}
    known |= {"symmetric": "in-order"}
    answers = {}
    while (plan := diagnose(checkpoint, goal, choose=answers, accept=["same-order"]).plan) and plan.ambiguities:
        answers |= {q.id: known[q.id] for q in plan.ambiguities}
    assert plan.complete and "rotary-halves" in answers
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[names[n]], permuted(weights[n])) for n in names)
    assert verify_plan(checkpoint, plan, goal).holds


def test_torchtunes_norms_are_before_what_they_are_called_after(file_of, target_of):
    """Its sa_norm is Llama's input_layernorm, mlp_norm is post_attention_layernorm; a norm that only scales has no
    weight beside."""

    def side(embed, block, attention, mlp, norms, norm):
        shapes = {embed: (30, 16)}
        for i in range(2):
            shapes |= {block.format(i) + f"{attention}.{x}_proj.weight": (16, 16) for x in "qkv"}
            shapes |= {
                block.format(i) + name: shape for name, shape in zip(mlp, ((24, 16), (24, 16), (16, 24)), strict=True)
            }
            shapes |= {block.format(i) + name: (16,) for name in norms}
        return shapes | {norm: (16,)}

    tune = "tok_embeddings.weight", "layers.{}.", "attn", ("mlp.w1.weight", "mlp.w3.weight", "mlp.w2.weight")
    hugging = "model.embed_tokens.weight", "model.layers.{}.", "self_attn"
    mlp = "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"
    ours = side(*tune, ("sa_norm.scale", "mlp_norm.scale"), "norm.scale")
    norms = ("input_layernorm.weight", "post_attention_layernorm.weight")
    goal = side(*hugging, mlp, norms, "model.norm.weight")
    plan = diagnose(file_of(ours), target_of(goal), choose={"rotary-halves": "heads-of-4"}).plan
    goes = {step.source: step.target for step in plan.steps}
    assert plan.complete and goes == dict(zip(ours, goal, strict=True))


def test_torchs_own_attention_rotates_nothing(saved, target_of):
    torch.manual_seed(0)
    ours = {
        f"layers.{i}.attn.{x}_proj.{leaf}": torch.randn((12, 12)[: 2 if leaf == "weight" else 1])
        for i in range(2)
        for x in ("q", "k", "v", "out")
        for leaf in ("weight", "bias")
    }
    goal = {
        f"layers.{i}.self_attn.{name}": shape
        for i in range(2)
        for name, shape in (
            ("in_proj_weight", (36, 12)),
            ("in_proj_bias", (36,)),
            ("out_proj.weight", (12, 12)),
            ("out_proj.bias", (12,)),
        )
    }
    plan = diagnose(saved(ours), target_of(goal)).plan
    assert plan.complete and not plan.ambiguities
