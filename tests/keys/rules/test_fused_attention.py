"""Query, key and value joined and taken apart: by torch's own attention, bit for bit, in the order that names say."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Step, StepKind, used_sources
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

ACCEPT = ("fused-attention",)


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


@pytest.mark.parametrize("names", [("q_proj", "k_proj", "v_proj"), ("query", "key", "value"), ("q", "k", "v")])
@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("joined", [True, False])
def test_there_and_back(names, prefix, joined, tmp_path, target_of, monkeypatch):
    whole = fused()
    ours, goal = (apart(whole, names), whole) if joined else (whole, apart(whole, names))
    torch.save({prefix + n: t for n, t in ours.items()}, tmp_path / "a.pth")
    checkpoint, target = open_checkpoint(tmp_path / "a.pth"), target_of(shapes(goal))
    waiting = diagnose(checkpoint, target).plan
    assert not waiting.complete and waiting.needs_accept == ACCEPT
    plan = diagnose(checkpoint, target, accept=ACCEPT).plan
    assert plan.complete and verify_plan(checkpoint, plan, target).holds
    made = apply_plan(checkpoint, plan)
    assert list(made) == list(goal) and all(torch.equal(made[n], t) for n, t in goal.items())
    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert set(model.held) == set(goal) and all(torch.equal(model.held[n], t) for n, t in goal.items())


def test_a_wrong_join_is_caught_by_the_bytes(saved, target_of):
    whole = fused()
    checkpoint, target = saved(apart(whole)), target_of(shapes(whole))
    plan = diagnose(checkpoint, target, accept=ACCEPT).plan
    held = apply_plan(checkpoint, plan)
    from tests.raw import prove_bytes

    assert prove_bytes(checkpoint, plan, held).passed
    name = "blocks.1.attn.in_proj_weight"
    held[name] = held[name].roll(4, 0)
    assert prove_bytes(checkpoint, plan, held).passed is False


def test_interleaved_or_uneven_or_incomplete_ones_are_left_alone(file_of, target_of):
    whole = {"a.out.weight": (4, 4), "a.qkv.weight": (12, 4)}
    three = {"a.out.weight": (4, 4)} | {f"a.{n}.weight": (4, 4) for n in "qkv"}
    assert diagnose(file_of(three), target_of(whole), accept=ACCEPT).plan.complete
    for ours, goal in (
        (three, {"a.out.weight": (4, 4), "a.query_key_value.weight": (12, 4)}),
        ({n: s for n, s in three.items() if n != "a.k.weight"}, whole),
        (three | {"a.k.weight": (2, 4)}, whole),
        (three, {"a.out.weight": (4, 4), "b.qkv.weight": (12, 4)}),
    ):
        plan = diagnose(file_of(ours), target_of(goal), accept=(*ACCEPT, "extra-tensors")).plan
        assert plan is None or not plan.complete


def test_an_attention_that_nothing_else_has_placed_is_left_alone(file_of, target_of):
    ours = {"x.weight": (3, 4)} | {f"a.{n}.weight": (4, 4) for n in "qkv"}
    plan = diagnose(file_of(ours), target_of({"x.weight": (3, 4), "a.qkv.weight": (12, 4)}), accept=ACCEPT).plan
    assert not plan.complete


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


def test_square_matrices_of_a_turned_file_are_not_joined(file_of, target_of):
    """No shape shows that query, key and value are the other way round; the layer beside them shows that they are."""
    rest = {"attn.proj.weight": (4, 4), "mlp.fc1.weight": (8, 4), "mlp.fc1.bias": (8,)}
    apart = {f"attn.{n}.weight": (4, 4) for n in ("q_proj", "k_proj", "v_proj")}
    goal = {"attn.qkv.weight": (12, 4)} | rest
    turned = diagnose(file_of(apart | rest | {"mlp.fc1.weight": (4, 8)}), target_of(goal), accept=("fused-attention",))
    assert not turned.plan.complete and "attn.qkv.weight" in turned.plan.missing
    assert diagnose(file_of(apart | rest), target_of(goal), accept=("fused-attention",)).plan.complete


def test_a_square_whole_of_a_turned_file_is_not_taken_apart(file_of, target_of):
    rest = {"mlp.fc1.weight": (12, 4), "mlp.fc1.bias": (12,), "attn.proj.weight": (4, 12)}
    goal = {f"attn.{n}.weight": (4, 12) for n in ("q_proj", "k_proj", "v_proj")} | rest
    fused = {"attn.qkv.weight": (12, 12)}
    turned = diagnose(
        file_of(fused | rest | {"mlp.fc1.weight": (4, 12), "attn.proj.weight": (12, 4)}),
        target_of(goal),
        accept=("fused-attention",),
    )
    assert not turned.plan.complete
    assert diagnose(file_of(fused | rest), target_of(goal), accept=("fused-attention",)).plan.complete
