"""Numbers that moved compete with equal names; a contradiction is the user's to settle."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose


def sequence(numbers, shape=(4, 4)):
    return {f"net.{n}.{leaf}": s for n in numbers for leaf, s in (("weight", shape), ("bias", shape[:1]))}


def moved(report):
    return {s.target: s.source for s in report.plan.steps if s.source is not None and s.target is not None}


def test_a_shift_that_no_name_contradicts_is_taken(file_of, target_of):
    report = diagnose(file_of(sequence([1, 4])), target_of(sequence([0, 3])))
    assert report.plan.complete and moved(report)["net.3.weight"] == "net.4.weight"
    assert report.plan.rules[0].says == "shift the numbers of net.N by -1"


def test_gaps_that_opened_between_layers_are_closed_in_order(file_of, target_of):
    report = diagnose(file_of(sequence([1, 2, 3])), target_of(sequence([4, 6, 9])))
    assert report.plan.complete
    assert [moved(report)[f"net.{n}.bias"] for n in (4, 6, 9)] == ["net.1.bias", "net.2.bias", "net.3.bias"]


def test_equal_neighbours_make_it_a_question(file_of, target_of):
    ours, theirs = file_of(sequence([1, 2, 3])), target_of(sequence([0, 1, 2]))
    report = diagnose(ours, theirs)
    assert not report.plan.complete and [a.id for a in report.plan.ambiguities] == ["index-shift"]
    assert moved(report) == {}
    shifted = diagnose(ours, theirs, choose={"index-shift": "shifted"})
    assert shifted.plan.complete and moved(shifted)["net.0.weight"] == "net.1.weight"
    named = diagnose(ours, theirs, choose={"index-shift": "as-named"})
    assert not named.plan.complete and moved(named)["net.1.weight"] == "net.1.weight"
    assert "net.0.weight" in named.plan.missing


def test_a_missing_layer_is_no_shift(file_of, target_of):
    report = diagnose(file_of(sequence([0, 1, 3])), target_of(sequence([0, 1, 2, 3])))
    assert not report.plan.ambiguities and not report.plan.complete
    assert report.plan.missing == ("net.2.weight", "net.2.bias")


def test_equal_numbers_are_left_alone(file_of, target_of):
    assert diagnose(file_of(sequence(range(5))), target_of(sequence(range(5)))).plan.rules == ()


def blocks(numbers):
    """A stack of equal blocks beside an embedding."""
    sizes = {"attn.weight": (12, 4), "attn.bias": (12,), "fc.weight": (8, 4), "fc.bias": (8,)}
    return {"emb.weight": (9, 4)} | {f"layers.{n}.{name}": s for n in numbers for name, s in sizes.items()}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(range(6, 12), range(6)), (range(6), range(6, 12)), (range(2, 4), range(2)), ([3], [0]), (range(4, 8), range(4))],
)
def test_some_layers_of_a_deeper_network_are_not_taken_for_a_whole_one(ours, theirs, file_of, target_of):
    report = diagnose(file_of(blocks(ours)), target_of(blocks(theirs)))
    assert not report.plan.complete and [a.id for a in report.plan.ambiguities] == ["index-shift"]
    assert "part of a deeper network" in report.says and "Lossless" not in report.says
    shifted = diagnose(file_of(blocks(ours)), target_of(blocks(theirs)), choose={"index-shift": "shifted"})
    assert shifted.plan.complete
    named = diagnose(file_of(blocks(ours)), target_of(blocks(theirs)), choose={"index-shift": "as-named"})
    assert not named.plan.complete


def test_equal_layers_far_off_are_asked_about_and_different_ones_are_not(file_of, target_of):
    far = diagnose(file_of(sequence([6, 7, 8])), target_of(sequence([0, 1, 2])))
    assert [a.id for a in far.plan.ambiguities] == ["index-shift"]
    ours = sequence([3], (4, 6)) | sequence([4], (2, 4))
    goal = sequence([0], (4, 6)) | sequence([1], (2, 4))
    assert diagnose(file_of(ours), target_of(goal)).plan.complete


def test_numbers_against_the_order_of_the_file_are_asked_about(file_of, target_of, placed_as):
    goal = {f"net.{i}.{n}": s for i in (0, 1) for n, s in (("weight", (6, 6)), ("bias", (6,)))} | {"out.weight": (2, 6)}
    ours = {f"net.{i}.{n}": s for i in (3, 2) for n, s in (("weight", (6, 6)), ("bias", (6,)))} | {"out.weight": (2, 6)}
    report = diagnose(file_of(ours), target_of(goal))
    assert [q.id for q in report.plan.ambiguities] == ["index-shift"]
    assert [option for option, _ in report.plan.ambiguities[0].options] == ["shifted", "as-named", "as-listed"]
    listed = diagnose(file_of(ours), target_of(goal), choose={"index-shift": "as-listed"})
    assert listed.plan.complete and placed_as(listed)["net.0.weight"] == "net.3.weight"
    numbers = diagnose(file_of(ours), target_of(goal), choose={"index-shift": "shifted"})
    assert numbers.plan.complete and placed_as(numbers)["net.0.weight"] == "net.2.weight"


UP = {"up1.weight": (8, 24, 3, 3), "up2.weight": (4, 12, 3, 3), "up3.weight": (3, 7, 3, 3)}
DOWN = {"down1.weight": (4, 3, 3, 3), "down2.weight": (8, 4, 3, 3)}


def counted_back(net):
    return {n if n[2].isalpha() else f"up{4 - int(n[2])}{n[3:]}": s for n, s in net.items()}


def test_a_row_counted_from_its_other_end_is_turned_where_shapes_leave_no_other_way(file_of, target_of, placed_as):
    ours = counted_back(UP | DOWN)
    for ordered in (True, False):
        report = diagnose(file_of(ours, ordered=ordered), target_of(UP | DOWN))
        assert report.plan.complete and not report.plan.needs_accept
        assert {t: s for t, s in placed_as(report).items() if t in UP} == {
            "up1.weight": "up3.weight",
            "up2.weight": "up2.weight",
            "up3.weight": "up1.weight",
        }


def test_a_row_that_only_seems_to_be_counted_from_its_other_end_is_left(file_of, target_of):
    wide = {f"up{n}.weight": s for n, s in ((1, (8, 4)), (2, (6, 6)), (3, (4, 8)))}
    for goal in (
        wide,  # each lies the other way round
        {"up1.weight": (8, 24, 3, 3), "up2.weight": (8, 24, 3, 3), "up3.weight": (3, 7, 3, 3)},  # two hold the same
        {"up1.weight": (8, 24, 3, 3), "up2.weight": (3, 7, 3, 3)},  # of two it may be another network's
    ):
        ours = {f"up{len(goal) + 1 - int(n[2])}.weight": s for n, s in goal.items()}
        report = diagnose(file_of(ours | DOWN), target_of(goal | DOWN))
        assert report.plan is None or not report.plan.complete or "index-shift" not in [u.id for u in report.plan.rules]


def test_a_layer_that_keeps_its_number_contradicts_nothing_where_none_is_like_it(file_of, target_of):
    """Batch norms were put between: the first number is equal, and every layer has its own shape."""

    def net(numbers):
        sizes = ((12, 3), (24, 12), (48, 24))
        layers = zip(numbers, sizes, strict=True)
        return {f"encoder.{n}.{x}": (a, b, 4, 4) if x == "weight" else (a,) for n, (a, b) in layers for x in LEAVES}

    plan = diagnose(file_of(net((0, 3, 6))), target_of(net((0, 2, 4)))).plan
    assert plan.complete and not plan.ambiguities and not plan.chosen
    assert {s.source: s.target for s in plan.steps}["encoder.6.bias"] == "encoder.4.bias"
    # Where the names place more than one of equal layers, the answers differ.
    alike = [{f"net.{n}.weight": (8, 8) for n in numbers} for numbers in ((1, 2, 3, 4), (0, 1, 2, 3))]
    asked = diagnose(file_of(alike[0] | {"net.9.weight": (3, 8)}), target_of(alike[1] | {"net.8.weight": (3, 8)})).plan
    assert asked is None or asked.ambiguities or not asked.complete


LEAVES = ("weight", "bias")
