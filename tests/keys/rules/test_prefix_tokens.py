"""A token more before the grid: left out with consent, asked about where there are two, refused where it is lacking."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

ACCEPT = ("prefix-tokens",)


def net(length, width=8):
    return {"pos_embed": (1, length, width), "head.weight": (3, width)}


@pytest.mark.parametrize(
    ("ours", "choose", "out"),
    [(17, {}, 0), (18, {"prefix-tokens": "keep-first"}, 1), (18, {"prefix-tokens": "keep-second"}, 0)],
)
def test_one_token_is_left_out_and_the_grid_stays(ours, choose, out, tmp_path, target_of, monkeypatch):
    held = torch.randn(1, ours, 8)
    torch.save({"pos_embed": held, "head.weight": torch.randn(3, 8)}, tmp_path / "a.pth")
    checkpoint, goal = open_checkpoint(tmp_path / "a.pth"), target_of(net(ours - 1))
    waiting = diagnose(checkpoint, goal).plan
    assert not waiting.complete and waiting.needs_accept == ACCEPT and len(waiting.ambiguities) == bool(choose)
    plan = diagnose(checkpoint, goal, accept=ACCEPT, choose=choose).plan
    made = apply_plan(checkpoint, plan)["pos_embed"]
    assert plan.complete and torch.equal(made[:, -16:], held[:, -16:])
    assert torch.equal(made, held[:, [i for i in range(ours) if i != out]])

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert torch.equal(model.held["pos_embed"], made)


@pytest.mark.parametrize(("ours", "theirs"), [(16, 17), (17, 18), (16, 18)])
def test_a_token_that_is_lacking_is_not_made_up(ours, theirs, file_of, target_of):
    report = diagnose(file_of(net(ours)), target_of(net(theirs)), accept=(*ACCEPT, "position-grid"))
    assert report.plan is None and "not another picture size" in report.refusal


def test_what_is_no_grid_is_left_alone(file_of, target_of):
    for ours, theirs in ((513, 512), (19, 16), (20, 18)):
        report = diagnose(file_of(net(ours)), target_of(net(theirs)), accept=ACCEPT)
        assert report.plan is None
    other = diagnose(file_of(net(17, 8)), target_of(net(16, 4)), accept=ACCEPT)
    assert other.plan is None


def test_a_grid_of_another_size_is_another_rules_matter(file_of, target_of):
    plan = diagnose(file_of(net(17)), target_of(net(26)), accept=["position-grid"]).plan
    assert plan.complete and {s.rule for s in plan.steps} == {"", "position-grid"}


def test_equal_lengths_are_untouched(file_of, target_of):
    assert diagnose(file_of(net(17)), target_of(net(17))).plan.rules == ()
