"""Another picture size is a resized grid, opt-in; another number of tokens is not."""

from __future__ import annotations

import torch
from torchvision.models.vision_transformer import interpolate_embeddings

from inspector.keys.apply import apply_plan
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.operations.resize_grid import resize_grid
from inspector.readers import open_checkpoint


def net(length, name="pos_embed"):
    return {name: (1, length, 8), "head.weight": (3, 8)}


def test_a_larger_picture_is_lossy_and_named(file_of, target_of):
    ours, goal = file_of(net(1 + 14 * 14)), target_of(net(1 + 24 * 24))
    waiting = diagnose(ours, goal)
    assert waiting.plan.needs_accept == ("position-grid",) and "Lossy" in waiting.says
    plan = diagnose(ours, goal, accept=["position-grid"]).plan
    assert plan.complete and "14 x 14 in the file, of 24 x 24" in plan.steps[0].reason


def test_another_number_of_tokens_is_refused(file_of, target_of):
    for ours, theirs in ((198, 197), (197, 196), (197, 200)):
        plan = diagnose(file_of(net(ours)), target_of(net(theirs)), accept=["position-grid"]).plan
        assert plan is None or not plan.complete
    assert diagnose(file_of(net(197, "table")), target_of(net(577, "table")), accept=["position-grid"]).plan is None


def test_the_numbers_are_torchvisions_own_way_but_for_its_corners():
    # torchvision aligns corners, so only what does not depend on that is compared: a constant and the tokens.
    held = torch.cat([torch.randn(1, 1, 8), torch.full((1, 196, 8), 2.5)], dim=1)
    made = resize_grid(held, (1, 577, 8), 1)
    own = interpolate_embeddings(384, 16, {"encoder.pos_embedding": held})["encoder.pos_embedding"]
    assert made.shape == own.shape and torch.allclose(made, own, atol=1e-6) and torch.equal(made[:, :1], held[:, :1])


def test_the_code_computes_the_same_bits(tmp_path, target_of, monkeypatch):
    torch.save({"pos_embed": torch.randn(1, 10, 8), "head.weight": torch.randn(3, 8)}, tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth")
    plan = diagnose(checkpoint, target_of(net(17)), accept=["position-grid"]).plan

    class Loaded:
        def load_state_dict(self, state, strict):
            self.held = state

    model = Loaded()
    monkeypatch.chdir(tmp_path)
    exec(python_code(plan, file_name="a.pth"), {"model": model})
    assert torch.equal(model.held["pos_embed"], apply_plan(checkpoint, plan)["pos_embed"])


def test_equal_grids_are_untouched(file_of, target_of):
    assert diagnose(file_of(net(197)), target_of(net(197))).plan.rules == ()
