"""Tensors without a place are left out only when the user says so."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose

NET = {"conv.weight": (8, 3, 3, 3), "fc.weight": (2, 8)}


def test_extra_tensors_wait_for_acceptance(file_of, target_of):
    ours = file_of(NET | {"criterion.pos_weight": (2,)})
    waiting = diagnose(ours, target_of(NET))
    assert waiting.plan.needs_accept == ("extra-tensors",) and not waiting.plan.complete
    assert "extra-tensors" in waiting.says
    plan = diagnose(ours, target_of(NET), accept=["extra-tensors"]).plan
    assert plan.complete and [s.source for s in plan.steps if s.target is None] == ["criterion.pos_weight"]


def test_acceptance_changes_nothing_where_all_have_a_place(file_of, target_of):
    assert diagnose(file_of(NET), target_of(NET), accept=["extra-tensors"]).plan.rules == ()
