"""One matrix of query, key and value under another code's name: asked about, and put right by the numbers."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose

WIDTH, HEADS = 16, 4


def _sides(ours: str, theirs: str, rows: int = 3 * WIDTH, out: str = "dense"):
    file = {f"layers.{i}.attn.{ours}.{end}": shape for i in (0, 1) for end, shape in _ends(rows)}
    goal = {f"blocks.{i}.attn.{theirs}.{end}": shape for i in (0, 1) for end, shape in _ends(rows)}
    for names, stem, end in ((file, "layers", out), (goal, "blocks", "proj")):
        names |= {f"{stem}.{i}.attn.{end}.weight": (WIDTH, WIDTH) for i in (0, 1)}
    return file, goal


def _saved(saved, names):
    values = {name: torch.randn(shape) for name, shape in names.items()}
    return saved(values), values


def _made(checkpoint, report):
    assert report.plan.complete
    return apply_plan(checkpoint, report.plan)


def _ends(rows: int):
    return (("weight", (rows, WIDTH)), ("bias", (rows,)))


def test_head_by_head_is_asked_about_and_undone(saved, target_of):
    """The oracle: the three computed apart from the file's matrix, as GPT-NeoX's forward splits it."""
    file, goal = _sides("query_key_value", "qkv")
    checkpoint, values = _saved(saved, file)
    asked = diagnose(checkpoint, target_of(goal))
    assert [q.id for q in asked.plan.ambiguities] == ["fused-order"] and not asked.plan.complete
    report = diagnose(checkpoint, target_of(goal), choose={"fused-order": f"{HEADS}-heads"})
    made = _made(checkpoint, report)
    for i in (0, 1):
        x = torch.randn(5, WIDTH, dtype=torch.float64)
        stem = f"layers.{i}.attn.query_key_value"
        found = x @ values[f"{stem}.weight"].double().T + values[f"{stem}.bias"].double()
        q, k, v = found.view(5, HEADS, 3, WIDTH // HEADS).unbind(2)
        new = f"blocks.{i}.attn.qkv"
        ours = x @ made[f"{new}.weight"].double().T + made[f"{new}.bias"].double()
        for one, other in zip((q, k, v), ours.chunk(3, dim=1), strict=True):
            assert torch.equal(one.reshape(5, WIDTH), other)


def test_a_target_head_by_head_gets_its_rows(saved, target_of):
    """There and back is the same."""
    file, goal = _sides("query_key_value", "qkv")
    checkpoint, values = _saved(saved, goal)
    report = diagnose(checkpoint, target_of(file), choose={"fused-order": f"{HEADS}-heads"})
    made = _made(checkpoint, report)
    weight = made["layers.0.attn.query_key_value.weight"].view(HEADS, 3, WIDTH // HEADS, WIDTH)
    assert torch.equal(weight.transpose(0, 1).reshape(3 * WIDTH, WIDTH), values["blocks.0.attn.qkv.weight"])


def test_the_letters_of_a_name_are_an_order(saved, target_of):
    file, goal = _sides("kqv", "qkv", out="proj")
    checkpoint, values = _saved(saved, file)
    same = {"rename": "as-placed"}
    (question,) = diagnose(checkpoint, target_of(goal), choose=same).plan.ambiguities
    assert "kqv" in dict(question.options)
    made = _made(checkpoint, diagnose(checkpoint, target_of(goal), choose=same | {"fused-order": "kqv"}))
    k, q, v = values["layers.1.attn.kqv.weight"].chunk(3)
    assert torch.equal(made["blocks.1.attn.qkv.weight"], torch.cat([q, k, v]))


def test_fewer_heads_of_key_and_value_are_never_taken_in_silence(saved, target_of):
    file, goal = _sides("wqkv", "qkv_proj", rows=WIDTH + 4)
    checkpoint, _ = _saved(saved, file)
    (question,) = diagnose(checkpoint, target_of(goal)).plan.ambiguities
    assert [option for option, _ in question.options] == ["as-it-is", "otherwise"]
    declined = diagnose(checkpoint, target_of(goal), choose={"fused-order": "otherwise"})
    assert not declined.plan.complete


def test_one_name_on_both_sides_is_not_asked_about(saved, target_of):
    file, goal = _sides("query_key_value", "query_key_value")
    plan = diagnose(_saved(saved, file)[0], target_of(goal)).plan
    assert "fused-order" not in [q.id for q in plan.ambiguities]


def test_a_qkv_that_nothing_around_it_proves_is_asked_about(saved, target_of):
    """guided-diffusion's qkv is head by head, and loads as well."""
    file, goal = _sides("qkv", "in_proj", out="out_proj")
    checkpoint, values = _saved(saved, file)
    asked = diagnose(checkpoint, target_of(goal))
    assert [q.id for q in asked.plan.ambiguities] == ["fused-order"] and not asked.plan.complete
    made = _made(checkpoint, diagnose(checkpoint, target_of(goal), choose={"fused-order": f"{HEADS}-heads"}))
    whole = values["layers.0.attn.qkv.weight"].view(HEADS, 3, WIDTH // HEADS, WIDTH)
    assert torch.equal(made["blocks.0.attn.in_proj.weight"], whole.transpose(0, 1).reshape(3 * WIDTH, WIDTH))


def _blocks(names: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {f"blocks.{i}.{name}": shape for i in (0, 1) for name, shape in names.items()}


def test_timms_and_torchs_names_prove_one_order(saved, target_of):
    """Every name of timm's block stands around its qkv, and torch's out_proj beside in_proj_weight."""
    rest = {f"norm{i}.{end}": (WIDTH,) for i in (1, 2) for end in ("weight", "bias")}
    rest |= {"mlp.fc1.weight": (32, WIDTH), "mlp.fc2.weight": (WIDTH, 32)}
    timm = {"attn.qkv.weight": (3 * WIDTH, WIDTH), "attn.qkv.bias": (3 * WIDTH,), "attn.proj.weight": (WIDTH, WIDTH)}
    own = {"attn.in_proj_weight": (3 * WIDTH, WIDTH), "attn.in_proj_bias": (3 * WIDTH,)}
    own |= {"attn.out_proj.weight": (WIDTH, WIDTH)}
    stem = {"patch_embed.proj.weight": (WIDTH, 3, 4, 4)}
    checkpoint, values = _saved(saved, _blocks(timm | rest) | stem)
    report = diagnose(checkpoint, target_of(_blocks(own | rest) | stem))
    assert "fused-order" not in [q.id for q in report.plan.ambiguities]
    made = _made(checkpoint, report)
    assert torch.equal(made["blocks.1.attn.in_proj_weight"], values["blocks.1.attn.qkv.weight"])


@pytest.mark.parametrize(("ours", "theirs"), list(permutations(("qkv", "kqv", "vkq"), 2)))
@pytest.mark.parametrize("end", [".weight", ""])
def test_letters_on_either_side_are_asked_about_by_words_and_by_order(ours, theirs, end, saved, target_of):
    """The oracle: each part cut out of the file's matrix by its own letter, and put together as the target's spell."""
    file, goal = (
        {f"layers.{i}.{own}{end}": (3 * WIDTH, WIDTH) for i in (0, 1)}
        | {f"layers.{i}.proj.weight": (WIDTH, WIDTH) for i in (0, 1)}
        for own in (ours, theirs)
    )
    checkpoint, values = _saved(saved, file)
    asked = diagnose(checkpoint, target_of(goal))
    assert [q.id for q in asked.plan.ambiguities] == ["fused-order"] and not asked.plan.complete
    letters = next(x for x in dict(asked.plan.ambiguities[0].options) if x in (ours, theirs))
    made = _made(checkpoint, diagnose(checkpoint, target_of(goal), choose={"fused-order": letters}))
    parts = dict(zip(ours, values[f"layers.1.{ours}{end}"].chunk(3), strict=True))
    assert torch.equal(made[f"layers.1.{theirs}{end}"], torch.cat([parts[letter] for letter in theirs]))


def test_an_order_of_the_names_says_nothing_of_the_rows(saved, target_of):
    """Placed by order, which the user accepts, a matrix is asked about all the same."""
    file = {f"a{i}.kqv_mix.weight": (3 * WIDTH, WIDTH) for i in (0, 1)} | {"b.weight": (WIDTH, 5)}
    goal = {f"first_{i}.qkv.weight": (3 * WIDTH, WIDTH) for i in (0, 1)} | {"second.weight": (WIDTH, 5)}
    checkpoint, _ = _saved(saved, file)
    asked = diagnose(checkpoint, target_of(goal), accept=["same-order"])
    assert asked.plan is None or not asked.plan.complete
