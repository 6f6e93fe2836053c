"""Another number of input channels: opt-in, and only at the first convolution."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind


def net(channels, inner=8):
    return {"stem.weight": (8, channels, 7, 7), "conv.weight": (16, inner, 3, 3)}


def test_the_first_convolution_waits_for_acceptance(file_of, target_of):
    for ours, theirs in ((3, 1), (3, 4), (1, 3)):
        assert diagnose(file_of(net(ours)), target_of(net(theirs))).plan.needs_accept == ("first-convolution",)
        plan = diagnose(file_of(net(ours)), target_of(net(theirs)), accept=["first-convolution"]).plan
        adapted = [s for s in plan.steps if s.kind is StepKind.ADAPT]
        assert plan.complete and [(s.target, s.shape) for s in adapted] == [("stem.weight", (8, theirs, 7, 7))]


def test_inner_channels_are_another_network(file_of, target_of):
    assert diagnose(file_of(net(3, 8)), target_of(net(3, 4)), accept=["first-convolution"]).plan is None


def test_where_the_architecture_names_it_nothing_else_is_one(file_of, target_of):
    goal = target_of(net(1), first_convolutions=("conv.weight",))
    assert diagnose(file_of(net(3)), goal, accept=["first-convolution"]).plan is None


def test_equal_channels_are_kept(file_of, target_of):
    assert diagnose(file_of(net(3)), target_of(net(3))).plan.rules == ()
