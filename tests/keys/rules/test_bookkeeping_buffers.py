"""Counters come and go without loss; a large tensor under such a name does not."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, StepKind

NET = {"bn.weight": (4,), "bn.bias": (4,), "bn.running_mean": (4,), "bn.running_var": (4,)}


def test_extra_counters_are_left_out(file_of, target_of):
    more = {"bn.num_batches_tracked": (), "n_averaged": (), "bn.total_ops": (1,), "bn.total_params": (1,)}
    plan = diagnose(file_of(NET | more), target_of(NET)).plan
    assert plan.complete and {s.source for s in plan.steps if s.kind is StepKind.DROP} == set(more)
    assert all(s.cost is Cost.LOSSLESS for s in plan.steps)


def test_missing_counters_start_at_zero(file_of, target_of):
    plan = diagnose(file_of(NET), target_of(NET | {"bn.num_batches_tracked": ()})).plan
    fill = plan.steps[-1]
    assert plan.complete
    assert (fill.kind, fill.value, fill.target, fill.shape) == (StepKind.FILL, "zero", "bn.num_batches_tracked", ())


def test_missing_statistics_are_no_bookkeeping(file_of, target_of):
    plan = diagnose(file_of({n: s for n, s in NET.items() if "var" not in n}), target_of(NET)).plan
    assert not plan.complete and plan.missing == ("bn.running_var",)


def test_many_numbers_under_a_counters_name_need_acceptance(file_of, target_of):
    plan = diagnose(file_of(NET | {"bn.total_ops": (64, 64)}), target_of(NET)).plan
    assert plan.needs_accept == ("extra-tensors",)
