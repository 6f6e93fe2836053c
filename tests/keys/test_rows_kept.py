"""Numbers of one row keep their order, whatever hides them: separators, words around them, kinds of equal size."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose

EMBED = {"embed.weight": (30, 8)}


def rows(names, shape=(8, 8)):
    return {f"{n}.{last}": (shape if last == "weight" else shape[:1]) for n in names for last in ("weight", "bias")}


def wrongly_placed(report, goes):
    """Tensors that the plan puts elsewhere."""
    steps = report.plan.steps if report.plan is not None else ()
    places = {s.source.rpartition(".")[0]: s.target.rpartition(".")[0] for s in steps if s.source and s.target}
    return {name: place for name, place in places.items() if name in goes and goes[name] != place}


@pytest.mark.parametrize("count", [3, 5, 9])
@pytest.mark.parametrize("name", ["layers_{}", "layers/{}", "layers-{}"])
def test_the_last_of_a_row_counted_from_1_is_not_the_first(name, count, file_of, target_of):
    """layers_1 to layers_8 were read as layers.1 to layers.8, and what was left over, layers_9, as layers.0."""
    ours = [name.format(i) for i in range(1, count + 1)]
    goes = {own: f"layers.{i}" for i, own in enumerate(ours)}
    file, target = file_of(EMBED | rows(ours)), target_of(EMBED | rows(goes.values()))
    report = diagnose(file, target)
    assert not wrongly_placed(report, goes)
    for question in report.plan.ambiguities:
        report = diagnose(file, target, choose={question.id: "shifted"})
    assert report.plan.complete and not wrongly_placed(report, goes)


@pytest.mark.parametrize("name", ["conv{}_block", "enc{}_layer", "Conv{}Block"])
def test_numbers_inside_words_that_the_file_lists_backwards_are_no_numbers_of_places(name, file_of, target_of):
    """conv1_block and conv2_block were read as conv_blocks.1 and conv_blocks.2, and conv3_block as conv_blocks.0."""
    goes = {name.format(i + 1): f"conv_blocks.{i}" for i in reversed(range(3))}
    report = diagnose(file_of(EMBED | rows(goes)), target_of(EMBED | rows(sorted(goes.values()))))
    assert report.plan is None or not report.plan.complete


@pytest.mark.parametrize("around", ["", "module."])
def test_whoever_says_that_the_numbers_hold_is_not_told_otherwise_by_words(around, file_of, target_of):
    ours = {f"{around}{name}": shape for name, shape in (EMBED | rows(f"layers.{i}" for i in (1, 2, 3))).items()}
    file, target = file_of(ours), target_of(EMBED | rows(f"layers.{i}" for i in range(3)))
    (question,) = diagnose(file, target).plan.ambiguities
    plan = diagnose(file, target, choose={question.id: "as-named"}).plan
    assert "layers.0.weight" in plan.missing
    assert not wrongly_placed(
        diagnose(file, target, choose={question.id: "as-named"}), {f"{around}layers.{i}": f"layers.{i}" for i in (1, 2)}
    )


@pytest.mark.parametrize("other_way", [False, True])
def test_kinds_of_equal_size_do_not_exchange_their_numbers(other_way, file_of, target_of):
    """conv1 and convs.0, convs.1 were placed by how many there are of each: conv1 as the one conv0."""
    kernel, small = (8, 8, 3, 3), (3, 8, 1, 1)
    ours = rows(("conv1", "convs.0", "convs.1"), kernel) | rows(("to_rgb1", "to_rgbs.0"), small)
    goal = rows(("b4.conv1", "b8.conv0", "b8.conv1"), kernel) | rows(("b4.torgb", "b8.torgb"), small)
    goes = {"conv1": "b4.conv1", "convs.0": "b8.conv0", "convs.1": "b8.conv1"}
    if other_way:
        ours, goal, goes = goal, ours, {place: name for name, place in goes.items()}
    report = diagnose(file_of(ours, ordered=False), target_of(goal))
    assert not wrongly_placed(report, goes)
    asked = next(q for q in report.plan.ambiguities if "convs.0" in q.question)
    said = ", ".join(f"{name} is {place}" for name, place in goes.items())
    assert said in [says for _, says in asked.options]


def test_what_is_wrapped_once_more_under_a_number_keeps_its_place(file_of, target_of):
    """convs.0.block2 was read as conv2 for the last number in its name, and convs.1 beside it as conv1."""
    kernel = (4, 4, 3, 3)
    ours = {f"block.{b}.convs.{n}.weight": kernel for b in (0, 1) for n in (0, 1)} | {"classifier.weight": (3, 4)}
    ours = {name.replace("1.convs.0", "1.convs.0.block2"): shape for name, shape in ours.items()}
    goal = {f"layer.{b}.conv{n}.weight": kernel for b in (0, 1) for n in (1, 2)} | {"fc.weight": (3, 4)}
    goes = {"block.1.convs.0.block2": "layer.1.conv1", "block.1.convs.1": "layer.1.conv2"}
    report = diagnose(file_of(ours), target_of(goal))
    assert report.plan is None or not report.plan.complete or not wrongly_placed(report, goes)


@pytest.mark.parametrize(("outer", "inner"), [("block", "stage"), ("unit", "stage"), ("layer", "group")])
def test_a_stage_inside_of_a_block_is_not_counted_through_in_silence(outer, inner, file_of, target_of):
    ours = rows(f"{outer}{b}.{inner}{s}" for s in (0, 1) for b in (0, 1))
    report = diagnose(file_of(ours), target_of(rows(f"layers.{i}" for i in range(4))))
    assert report.plan is None or not report.plan.complete
    usual = rows(f"{inner}{s}.{outer}{b}" for s in (0, 1) for b in (0, 1))
    assert diagnose(file_of(usual), target_of(rows(f"layers.{i}" for i in range(4)))).plan.complete
