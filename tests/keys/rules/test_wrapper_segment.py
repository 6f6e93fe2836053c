"""Segments, never substrings; only where the target lacks them; both ways."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

NET = {f"{layer}.{leaf}": shape for layer in ("conv", "fc") for leaf, shape in (("weight", (4, 3)), ("bias", (4,)))}


def moved(report):
    return {s.target: s.source for s in report.plan.steps if s.target is not None}


@pytest.mark.parametrize("prefix", ["module", "_orig_mod", "model", "my_module", "a.b.c", "module.module", "0"])
def test_a_prefix_is_dropped_and_added(prefix, file_of, target_of):
    wrapped = {f"{prefix}.{n}": s for n, s in NET.items()}
    assert moved(diagnose(file_of(wrapped), target_of(NET))) == {n: f"{prefix}.{n}" for n in NET}
    assert moved(diagnose(file_of(NET), target_of(wrapped))) == {f"{prefix}.{n}": n for n in NET}


def test_a_segment_that_only_contains_the_word_survives(file_of, target_of):
    net = {f"my_module.{n}": s for n, s in NET.items()}
    report = diagnose(file_of({f"module.{n}": s for n, s in net.items()}), target_of(net))
    assert moved(report) == {n: f"module.{n}" for n in net}


def test_a_segment_of_the_targets_own_is_left_alone(file_of, target_of):
    net = {f"module.{n}": s for n, s in NET.items()} | {"fc.weight": (2, 4)}
    assert diagnose(file_of(net), target_of(net)).plan.rules == ()
    # One wrapper over a network that has such a segment itself: one comes off, one stays.
    report = diagnose(file_of({f"module.{n}": s for n, s in net.items()}), target_of(net))
    assert moved(report) == {n: f"module.{n}" for n in net}


def test_a_name_that_leads_to_other_shapes_is_not_dropped(file_of, target_of):
    report = diagnose(file_of({f"net.{n}": (9, 9) for n in NET}), target_of(NET))
    assert report.plan is None and "can be placed" in report.refusal


def test_parts_under_two_wrappers_come_together(file_of, target_of):
    big = {f"layer{i}.{n}": s for i in range(1, 6) for n, s in NET.items()}
    parts = {f"student.{n}": s for n, s in big.items()} | {"teacher.out.weight": (2, 4)}
    report = diagnose(file_of(parts), target_of(big | {"out.weight": (2, 4)}))
    question = report.plan.ambiguities[0]  # a head of another network would fit as well
    assert question.id == "mixture" and "teacher.out.weight as out.weight" in question.question
    report = diagnose(file_of(parts), target_of(big | {"out.weight": (2, 4)}), choose={"mixture": "mix"})
    assert report.plan.complete and moved(report)["out.weight"] == "teacher.out.weight"


def test_alike_siblings_are_no_wrappers_of_each_other(file_of, target_of):
    ours = {f"{n}.weight": (4, 4) for n in ("q", "k", "value")}
    theirs = {f"{n}.weight": (4, 4) for n in ("query", "key", "value")}
    report = diagnose(file_of(ours), target_of(theirs))
    assert [use.id for use in report.plan.rules] == ["other-words"]
    assert moved(report) == dict(zip(theirs, ours, strict=True))
