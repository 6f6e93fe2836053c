"""Ones added and taken away, bit for bit; nothing that could be another order of elements."""

from __future__ import annotations

import torch

from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, StepKind
from inspector.keys.rules.unit_dimensions import same_but_ones
from inspector.keys.verify import verify_plan


def test_a_convolution_of_one_pixel_is_a_linear_layer(saved, target_of):
    state = {"fc.weight": torch.randn(5, 4), "fc.bias": torch.randn(5), "gamma": torch.randn(5, 1, 1)}
    goal = target_of({"fc.weight": (5, 4, 1, 1), "fc.bias": (5,), "gamma": (5,)})
    checkpoint = saved(state)
    plan = diagnose(checkpoint, goal).plan
    assert plan.complete and [use.id for use in plan.rules] == ["unit-dimensions"]
    assert {s.kind for s in plan.steps if s.rule} == {StepKind.RESHAPE} and plan.rules[0].cost is Cost.LOSSLESS
    made = apply_plan(checkpoint, plan)
    assert torch.equal(made["fc.weight"][:, :, 0, 0], state["fc.weight"])
    assert torch.equal(made["gamma"], state["gamma"].flatten()) and verify_plan(checkpoint, plan, goal).holds


def test_what_could_be_another_layout_is_left_alone(file_of, target_of):
    assert same_but_ones((8, 4), (8, 4, 1, 1)) and same_but_ones((1, 9, 4), (9, 4)) and same_but_ones((4, 1), (1, 4))
    assert not same_but_ones((1, 1, 4, 4), (4, 4, 1, 1)) and not same_but_ones((4, 8), (8, 4, 1, 1))
    assert not same_but_ones((4, 1, 4), (4, 4))
    ours = {"conv.weight": (1, 1, 4, 4), "fc.weight": (3, 4)}
    plan = diagnose(file_of(ours), target_of({"conv.weight": (4, 4, 1, 1), "fc.weight": (3, 4)})).plan
    assert not plan.complete and [q.id for q in plan.ambiguities] == ["channels-last"]


def test_a_square_one_beside_matrices_turned_round_is_not_decided(file_of, target_of):
    ours = {"a.weight": (4, 8), "b.weight": (4, 4)}
    report = diagnose(file_of(ours), target_of({"a.weight": (8, 4, 1, 1), "b.weight": (4, 4, 1, 1)}))
    assert report.plan is None and "another shape" in report.refusal
    ours, goal = {"a.weight": (4, 8), "a.bias": (8,), "b.weight": (4, 4)}, {"a.weight": (8, 4), "a.bias": (8,)}
    assert diagnose(file_of(ours), target_of(goal | {"b.weight": (4, 4, 1, 1)})).plan is None


def test_equal_shapes_are_untouched(file_of, target_of):
    net = {"a.weight": (4, 8, 1, 1), "b": (4, 1, 1)}
    assert diagnose(file_of(net), target_of(net)).plan.rules == ()


SQUARES = {f"fc{n}.{leaf}": shape for n in (1, 2) for leaf, shape in (("weight", (8, 8)), ("bias", (8,)))}


def test_a_layer_of_one_output_shows_which_way_round_matrices_lie(file_of, target_of):
    ours = SQUARES | {"value.weight": (8, 1), "value.bias": (1,)}
    goal = SQUARES | {"value.weight": (1, 8), "value.bias": (1,)}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert not plan.complete and [question.id for question in plan.ambiguities] == ["transposed"]
    plan = diagnose(file_of(ours), target_of(goal), choose={"transposed": "as-it-is"}).plan
    assert plan.complete


def test_where_others_show_it_what_is_one_wide_shows_nothing(file_of, target_of):
    more = SQUARES | {"in.weight": (8, 5), "value.bias": (1,)}
    plan = diagnose(file_of(more | {"value.weight": (8, 1)}), target_of(more | {"value.weight": (1, 8)})).plan
    assert plan.complete and [rule.id for rule in plan.rules] == ["unit-dimensions"]
