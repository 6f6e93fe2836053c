"""norm.1 and norm1, where all numbers of the name agree."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose

OLD = {"block.norm.1.weight": (3,), "block.norm.2.weight": (5,), "block.conv.1.weight": (5, 3, 1, 1)}
NEW = {"block.norm1.weight": (3,), "block.norm2.weight": (5,), "block.conv1.weight": (5, 3, 1, 1)}


def test_joins_and_splits(file_of, target_of):
    for ours, theirs in ((OLD, NEW), (NEW, OLD)):
        plan = diagnose(file_of(ours), target_of(theirs)).plan
        assert plan.complete and {u.id for u in plan.rules} == {"joined-segments"}
        assert [(s.source, s.target) for s in plan.steps] == list(zip(ours, theirs, strict=True))


def test_one_number_without_a_partner_keeps_the_name_apart(file_of, target_of):
    theirs = {n: s for n, s in NEW.items() if "norm2" not in n}
    plan = diagnose(file_of(OLD), target_of(theirs)).plan
    assert not plan.complete and "block.norm1.weight" in plan.missing


def test_a_sequential_of_that_name_is_left_alone(file_of, target_of):
    assert diagnose(file_of(OLD), target_of(OLD)).plan.rules == ()
