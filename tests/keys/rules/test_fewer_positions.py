"""Learned positions cut to the target's length: the first rows, with consent, and never of a picture."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

ACCEPT = ("fewer-positions",)


def net(rows, name="wpe.weight"):
    return {"wte.weight": (30, 8), name: rows, "h.0.fc.weight": (8, 8), "h.0.fc.bias": (8,)}


@pytest.mark.parametrize("lead", [(), (1,)])
def test_the_first_rows_are_kept_with_consent(lead, tmp_path, target_of):
    name = "wpe.weight" if not lead else "pos_emb"
    state = {n: torch.randn(s) for n, s in net((*lead, 32, 8), name).items()}
    torch.save(state, tmp_path / "a.pt")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pt"), target_of(net((*lead, 20, 8), name))
    assert diagnose(checkpoint, goal).plan.needs_accept == ACCEPT
    plan = diagnose(checkpoint, goal, accept=ACCEPT).plan
    assert torch.equal(apply_plan(checkpoint, plan)[name], state[name][..., :20, :])


@pytest.mark.parametrize(
    ("ours", "theirs", "more"),
    [
        ((20, 8), (32, 8), {}),  # more positions are nowhere
        ((22, 8), (20, 8), {}),  # OPT's two rows in front
        ((32, 8), (20, 8), {"patch.weight": (8, 3, 4, 4)}),  # a picture's grid
        ((32, 4), (20, 8), {}),
    ],
)
def test_what_may_be_something_else_is_not_cut(ours, theirs, more, file_of, target_of):
    assert diagnose(file_of(net(ours) | more), target_of(net(theirs) | more)).plan is None


def test_a_table_of_words_is_not_cut(file_of, target_of):
    words = {"wte.weight": (20, 8), "fc.weight": (8, 8)}
    assert diagnose(file_of(words | {"wte.weight": (32, 8)}), target_of(words), accept=ACCEPT).plan is None
