"""Foreign names in no order, and one way that the shapes leave: offered for consent, and right."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

SHAPES = ((6, 1, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84))
FOREIGN = ("faltung1", "faltung2", "voll1", "voll2", "ausgabe")
NAMES = ("conv1", "conv2", "fc1", "fc2", "fc3")


def network(names, shapes=SHAPES):
    return {
        f"{name}.{last}": (shape if last == "weight" else shape[:1])
        for name, shape in zip(names, shapes, strict=True)
        for last in ("weight", "bias")
    }


def test_one_way_is_offered_for_consent(file_of, target_of):
    file, target = file_of(network(FOREIGN), ordered=False), target_of(network(NAMES))
    report = diagnose(file, target)
    assert report.plan.needs_accept == ("same-shape",) and not report.plan.complete
    plan = diagnose(file, target, accept=("same-shape",)).plan
    assert plan.complete
    assert {s.source: s.target for s in plan.steps} == dict(zip(network(FOREIGN), network(NAMES), strict=True))


@pytest.mark.parametrize(
    "shapes",
    [
        (*SHAPES[:3], (84, 84), (84, 120)),  # two biases of one size
        (*SHAPES[:3], (84, 120), (11, 84)),  # another head
    ],
)
def test_two_ways_or_another_shape_are_none(shapes, file_of, target_of):
    report = diagnose(file_of(network(FOREIGN, shapes), ordered=False), target_of(network(NAMES)))
    assert report.plan is None
    report = diagnose(file_of(network(FOREIGN), ordered=False), target_of(network(NAMES, shapes)))
    assert report.plan is None


def test_a_weight_is_no_running_mean(file_of, target_of):
    file = file_of({"a.weight": (3,), "b.running_var": (5,)}, ordered=False)
    assert diagnose(file, target_of({"x.running_mean": (3,), "y.weight": (5,)})).plan is None


def test_opposite_words_are_no_one_layer(file_of, target_of):
    file = file_of({"enc_a": (4, 8), "dec_b": (8, 4), "mid": (3, 3)}, ordered=False)
    assert diagnose(file, target_of({"decoder_x": (4, 8), "encoder_y": (8, 4), "z": (3, 3)})).plan is None
