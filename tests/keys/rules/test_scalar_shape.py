"""[] and [1] are one number; [1] and [2] are not."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, StepKind


def test_one_number_is_reshaped_both_ways(file_of, target_of):
    for ours, theirs in (((), (1,)), ((1,), ())):
        plan = diagnose(file_of({"scale": ours}), target_of({"scale": theirs})).plan
        step = plan.steps[0]
        assert plan.complete
        assert (step.kind, step.shape, step.cost) == (StepKind.RESHAPE, theirs, Cost.LOSSLESS)


def test_other_shapes_of_one_size_are_refused(file_of, target_of):
    assert diagnose(file_of({"w": (2, 3)}), target_of({"w": (3, 2)})).plan is None
    assert diagnose(file_of({"w": (1,)}), target_of({"w": (1, 1)})).plan is None
