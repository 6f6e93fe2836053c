"""kernel and w for weight, only where the target's module has one matrix."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose


def test_kernels_are_called_weights(file_of, target_of, placed_as):
    goal = {f"dense{i}.{leaf}": s for i in (1, 2) for leaf, s in (("weight", (4, 6 + i)), ("bias", (4,)))}
    for names in ({"weight": "kernel"}, {"weight": "w", "bias": "b"}):
        truth = {f"{m}.{leaf}": f"{m}.{names.get(leaf, leaf)}" for m, leaf in (n.split(".") for n in goal)}
        report = diagnose(file_of({truth[n]: s for n, s in goal.items()}, ordered=False), target_of(goal))
        assert report.plan.complete and placed_as(report) == truth


def test_a_kernel_beside_a_weight_is_not_the_weight(file_of, target_of):
    goal = {"a.weight": (4, 4), "b.weight": (2, 4)}
    report = diagnose(file_of(goal | {"a.kernel": (4, 4)}), target_of(goal), accept=["extra-tensors"])
    assert [use.id for use in report.plan.rules] == ["extra-tensors"]


def test_a_kernel_of_another_size_is_not_the_weight(file_of, target_of):
    goal = {"a.weight": (4, 4), "b.weight": (2, 4)}
    report = diagnose(file_of({"a.kernel": (4, 5), "b.weight": (2, 4)}, ordered=False), target_of(goal))
    assert report.plan is None or "a.weight" in report.plan.missing
