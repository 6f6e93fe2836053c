"""A tensor that the file stores once under two names: the name without a place is left out, and nothing is asked."""

from __future__ import annotations

import pytest
import torch

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.readers import open_checkpoint

NETWORK = {"conv1.weight": (4, 3, 3, 3), "conv1.bias": (4,), "fc.weight": (5, 4), "fc.bias": (5,)}


def _numbers() -> dict[str, torch.Tensor]:
    return {name: torch.randn(shape) for name, shape in NETWORK.items()}


def _opened(tmp_path, state):
    torch.save(state, tmp_path / "file.pth")
    return open_checkpoint(tmp_path / "file.pth")


@pytest.mark.parametrize(
    ("one", "other", "there"),
    [("", "module.", ""), ("model.encoder.", "model.body.0.", ""), ("model.encoder.", "model.body.0.", "encoder.")],
)
def test_the_second_name_is_left_out_unasked(one, other, there, tmp_path, target_of):
    own = _numbers()
    checkpoint = _opened(tmp_path, {f"{prefix}{n}": v for prefix in (one, other) for n, v in own.items()})
    report = diagnose(checkpoint, target_of({f"{there}{n}": s for n, s in NETWORK.items()}))
    assert report.plan.complete and not report.plan.needs_accept and not report.plan.ambiguities
    made = apply_plan(checkpoint, report.plan)
    assert all(torch.equal(made[f"{there}{n}"], v) for n, v in own.items())


def test_equal_numbers_that_are_stored_twice_need_consent(tmp_path, target_of):
    own = _numbers()
    checkpoint = _opened(tmp_path, {**own, **{f"module.{n}": v.clone() for n, v in own.items()}})
    assert diagnose(checkpoint, target_of(NETWORK)).plan.needs_accept == ("extra-tensors",)


def test_a_target_that_has_both_keeps_both(tmp_path, target_of):
    own = _numbers()
    checkpoint = _opened(tmp_path, {f"model.{part}.{n}": v for part in ("encoder", "body.0") for n, v in own.items()})
    goal = {f"{part}.{n}": s for part in ("encoder", "body.0") for n, s in NETWORK.items()}
    plan = diagnose(checkpoint, target_of(goal)).plan
    assert plan.complete
    assert all(step.source == f"model.{step.target}" for step in plan.steps)


def test_the_second_name_of_a_tie_keeps_its_place(tmp_path, target_of):
    """Another matrix of its shape is too many: the tie's is not the one to go."""
    table = torch.randn(7, 4)
    own = {"module.emb.weight": table, "module.fc.weight": torch.randn(4, 4), "module.out.weight": table}
    checkpoint = _opened(tmp_path, own | {"module.other.weight": torch.randn(7, 4)})
    plan = diagnose(checkpoint, target_of({"emb.weight": (7, 4), "fc.weight": (4, 4), "out.weight": (7, 4)})).plan
    assert {s.target: s.source for s in plan.steps if s.target} == {name.removeprefix("module."): name for name in own}
