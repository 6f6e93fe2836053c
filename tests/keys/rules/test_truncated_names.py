"""One number of characters cut off every name: put back where that is what happened."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose


def encoder(tiny_vit):
    return {f"encoder.{n}": s for n, s in tiny_vit().items()}


def test_a_beginning_cut_by_length_is_put_back(file_of, target_of, tiny_vit, placed_as):
    goal = encoder(tiny_vit)
    for cut in (3, 9, 10):
        truth = {n: n[cut:] for n in goal}
        report = diagnose(file_of({truth[n]: s for n, s in goal.items()}, ordered=False), target_of(goal))
        assert report.plan.complete and placed_as(report) == truth, report.says


def test_an_end_of_two_names_is_asked_about(file_of, target_of):
    goal = {"key.weight": (4, 4), "hey.weight": (4, 4), "long.weight": (3, 4), "lung.bias": (3,), "cone.weight": (2, 4)}
    ours = {"y.weight": (4, 4), "ng.weight": (3, 4), "ng.bias": (3,), "ne.weight": (2, 4)}
    report = diagnose(file_of(ours), target_of(goal))
    assert not report.plan.complete
    assert [q.id for q in report.plan.ambiguities] == ["truncated-names"]


def test_names_cut_between_levels_are_a_prefix(file_of, target_of, tiny_vit):
    report = diagnose(file_of(tiny_vit()), target_of(encoder(tiny_vit)))
    assert [use.id for use in report.plan.rules] == ["wrapper-segment"]


def test_names_cut_by_different_lengths_are_not_put_back(file_of, target_of, tiny_vit):
    goal = encoder(tiny_vit)
    ours = {n[(3 if i % 2 else 4) :]: s for i, (n, s) in enumerate(goal.items())}
    report = diagnose(file_of(ours, ordered=False), target_of(goal))
    assert report.plan is None or not any(use.id == "truncated-names" for use in report.plan.rules)


def test_numbers_of_a_sequential_are_no_rest_of_a_name(file_of, target_of):
    goal = {f"conv{i}.weight": (4, 4) for i in range(1, 5)}
    report = diagnose(file_of({f"{i}.weight": (4, 4) for i in range(1, 5)}, ordered=False), target_of(goal))
    assert report.plan is None or not any(use.id == "truncated-names" for use in report.plan.rules)
