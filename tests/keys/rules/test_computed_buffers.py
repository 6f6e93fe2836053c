"""Buffers that follow from their shape: computed as the libraries do, left out only if their numbers are those."""

from __future__ import annotations

import pytest
import torch
from torchvision.models.swin_transformer import ShiftedWindowAttention

from inspector.errors import KeysDoNotFit
from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.operations.computed import COMPUTED
from inspector.keys.report import Cost
from inspector.keys.verify import verify_plan
from inspector.readers import open_checkpoint

BODY = {"a.weight": (3, 3), "b.weight": (4,)}
# What transformers registers, and torchvision.
BUFFERS = {
    "a.position_ids": torch.arange(7)[None],
    "a.relative_position_index": ShiftedWindowAttention(4, [3, 3], [0, 0], 2).relative_position_index,
    "a.bias": torch.tril(torch.ones(5, 5, dtype=torch.bool)).view(1, 1, 5, 5),
    "a.inv_freq": 1.0 / (10000 ** (torch.arange(0, 8, 2, dtype=torch.int64).float() / 8)),
}


class Loaded:
    def load_state_dict(self, state, strict):
        self.held = state


def run(plan, folder, monkeypatch):
    model = Loaded()
    monkeypatch.chdir(folder)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    return model.held


def body():
    torch.manual_seed(0)
    return {n: torch.randn(s) for n, s in BODY.items()}


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", BUFFERS)
def test_what_is_computed_is_left_out_without_loss(name, dtype, tmp_path, target_of, monkeypatch):
    held = BUFFERS[name] if dtype is None else BUFFERS[name].to(dtype)
    torch.save(body() | {name: held}, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(BODY)
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    assert set(run(plan, tmp_path, monkeypatch)) == set(BODY)


@pytest.mark.parametrize("name", BUFFERS)
def test_other_numbers_are_information_and_are_not_lost_in_silence(name, tmp_path, target_of, monkeypatch):
    held = BUFFERS[name].clone()
    held = 1.0 / (500000 ** (torch.arange(0, 8, 2).float() / 8)) if name.endswith("inv_freq") else held.flip(-1)
    torch.save(body() | {name: held}, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(BODY)
    plan = diagnose(checkpoint, goal).plan
    with pytest.raises(KeysDoNotFit, match=r"leaving it out would lose") as error:
        apply_plan(checkpoint, plan)
    assert "computed-buffers=leave-out" in error.value.hint and not verify_plan(checkpoint, plan, goal).holds
    with pytest.raises(ValueError, match="is not"):
        run(plan, tmp_path, monkeypatch)
    chosen = diagnose(checkpoint, goal, choose={"computed-buffers": "leave-out"}).plan
    assert chosen.rules[0].cost is Cost.LOSSY and set(apply_plan(checkpoint, chosen)) == set(BODY)


@pytest.mark.parametrize("name", ["a.position_ids", "a.relative_position_index"])
def test_what_follows_from_its_shape_is_computed(name, tmp_path, target_of, monkeypatch):
    torch.save(body(), tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(BODY | {name: tuple(BUFFERS[name].shape)})
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and verify_plan(checkpoint, plan, goal).holds
    for held in (apply_plan(checkpoint, plan), run(plan, tmp_path, monkeypatch)):
        assert torch.equal(held[name], BUFFERS[name]) and held[name].dtype is torch.int64


def test_what_shapes_do_not_say_is_not_filled(file_of, target_of):
    for name, shape in (
        ("a.inv_freq", (4,)),  # of which base?
        ("a.bias", (1, 1, 5, 5)),  # a mask, or a learned one
        ("a.position_ids", (3, 7)),
        ("a.relative_position_index", (9, 8)),
        ("a.relative_position_index", (50, 50)),
    ):
        plan = diagnose(file_of(BODY), target_of(BODY | {name: shape})).plan
        assert not plan.complete and plan.missing == (name,)


def test_a_bias_that_is_a_bias_is_no_mask(file_of, target_of):
    plan = diagnose(file_of(BODY | {"a.bias": (3,)}), target_of(BODY)).plan
    assert plan.needs_accept == ("extra-tensors",)


@pytest.mark.parametrize("kind", COMPUTED)
def test_function_and_lines_are_equal(kind):
    shape = {
        "positions": (1, 9),
        "window-pairs": (16, 16),
        "causal-mask": (1, 1, 6, 6),
        "future-mask": (6, 6),
        "window-coordinates": (1, 17, 17, 2),
        "inverse-frequencies": (8,),
        "rope-frequencies": (8,),
        "lower-mask": (6, 6),
        "upper-mask": (1, 1, 6, 6),
        "infinite-mask": (6, 6),
        "sinusoid": (1, 30, 8),
    }[kind]
    names = {"torch": torch}
    exec("\n".join(COMPUTED[kind].lines(shape)), names)
    assert torch.equal(names["buffer"], torch.from_numpy(COMPUTED[kind].make(shape)))


def test_both_sides_alike_are_untouched(file_of, target_of):
    net = BODY | {n: tuple(t.shape) for n, t in BUFFERS.items()}
    assert diagnose(file_of(net), target_of(net)).plan.rules == ()
