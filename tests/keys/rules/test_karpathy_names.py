"""W and b of one's own layers, and the statistics of a norm that go by another name than torch's."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose

GOAL = {"fc1.weight": (8, 5), "fc1.bias": (8,), "fc2.weight": (3, 8), "fc2.bias": (3,)}
NORM = {"conv.weight": (8, 3, 3, 3), "bn.weight": (8,), "bn.bias": (8,)}
STATISTICS = {"bn.running_mean": (8,), "bn.running_var": (8,)}


def test_w_is_a_weight_either_way_round(file_of, target_of):
    for turned in (False, True):
        ours = {n.replace("weight", "W").replace("bias", "b"): s[::-1] if turned else s for n, s in GOAL.items()}
        plan = diagnose(file_of(ours), target_of(GOAL)).plan
        assert plan.complete and not plan.needs_accept and not plan.ambiguities
        assert any(rule.id == "transposed" for rule in plan.rules) is turned


def test_a_square_w_is_asked_about(file_of, target_of):
    ours = {"fc1.W": (8, 8), "fc1.b": (8,)}
    (question,) = diagnose(file_of(ours), target_of({"fc1.weight": (8, 8), "fc1.bias": (8,)})).plan.ambiguities
    assert "square" in question.question


def test_statistics_under_other_names_are_not_begun_anew(file_of, target_of):
    """A new layer's statistics are offered for want of others: here the deviation is the root of what is missing."""
    report = diagnose(file_of(NORM | {"bn.mean": (8,), "bn.std": (8,)}), target_of(NORM | STATISTICS))
    assert report.plan is None and "bn.std has the shape of bn.running_var" in report.says
    plan = diagnose(file_of(NORM), target_of(NORM | STATISTICS)).plan
    assert plan.needs_accept == ("running-statistics",)


def test_equal_modules_are_something_in_common(file_of, target_of):
    says = diagnose(file_of({"a.x1": (3, 4), "b.x2": (4,)}), target_of({"a.y": (7, 4), "b.z": (9,)})).refusal
    assert "modules of both have equal names, their tensors have not (first are a.x1 and a.y)" in says
    says = diagnose(file_of({"a.x1": (3, 4), "b.x2": (4,)}), target_of({"c.y": (7, 4), "d.z": (9,)})).refusal
    assert "the names of both have nothing in common" in says
