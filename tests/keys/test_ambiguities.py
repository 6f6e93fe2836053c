"""What fits without being proven is asked about: mixed sets of weights, names by elimination, two readings."""

from __future__ import annotations

import re

import pytest

from inspector.errors import UsageError
from inspector.keys.diagnose import diagnose

NORM = {"weight": (4,), "bias": (4,), "running_mean": (4,), "running_var": (4,)}


def under(prefix, leaves):
    return {f"{prefix}.{n}": s for n, s in leaves.items()}


NET = under("conv", {"weight": (4, 3)}) | under("norm", NORM) | under("fc", {"weight": (2, 4), "bias": (2,)})


def only_question(file_of, target_of, ours, goal, accept=("extra-tensors",)):
    plan = diagnose(file_of(ours), target_of(goal), accept=accept).plan
    assert not plan.complete
    (question,) = plan.ambiguities
    return question


def test_a_teacher_does_not_fill_the_gaps_of_a_student_unasked(file_of, target_of):
    ours = {n: s for n, s in NET.items() if not n.startswith("fc.")} | under("teacher", NET)
    question = only_question(file_of, target_of, ours, NET)
    assert question.id == "mixture" and '"teacher." looks like a second set' in question.question
    mixed = diagnose(file_of(ours), target_of(NET), accept=["extra-tensors"], choose={"mixture": "mix"}).plan
    assert mixed.complete
    alone = diagnose(file_of(ours), target_of(NET), accept=["extra-tensors"], choose={"mixture": "leave-out"}).plan
    assert not alone.complete and alone.missing == ("fc.weight", "fc.bias")


def test_a_single_tensor_of_another_prefix_does_not_fill_a_gap_unasked(file_of, target_of):
    goal = {"head.weight": (2, 4), "scale": (4,)}
    question = only_question(file_of, target_of, {"a.head.weight": (2, 4), "ema.scale": (4,)}, goal)
    assert question.id == "mixture"


def test_what_is_left_over_on_both_sides_is_not_renamed_unasked(file_of, target_of):
    goal = under("0", NORM) | under("norm1", NORM)
    question = only_question(file_of, target_of, under("0", NORM) | under("module.7", NORM), goal)
    assert question.id == "rename" and "module.7.weight as norm1.weight" in question.question


def test_a_name_with_two_readings_is_not_placed_unasked(file_of, target_of):
    goal = under("layer1", NORM) | under("2", NORM)
    plan = diagnose(file_of(under("layer1.2", NORM) | under("model.2", NORM)), target_of(goal)).plan
    assert not plan.complete and plan.ambiguities


def test_a_name_that_needs_only_more_segments_is_not_exchanged_for_another(file_of, target_of):
    goal = {n: s for part in ("fc", "layer1.0", "0") for n, s in under(f"model.{part}", NORM).items()}
    ours = {n: s for part in ("fc", "layer1.0", "0") for n, s in under(part, NORM).items()}
    twin = under("layer1", ours)
    plan = diagnose(file_of(ours | twin), target_of(goal), accept=["extra-tensors"]).plan
    assert not plan.complete


@pytest.mark.parametrize("prefix", ["module", "net", "module._orig_mod.model", "conv", "fc"])
def test_one_wrapper_over_everything_asks_nothing(file_of, target_of, prefix):
    plan = diagnose(file_of(under(prefix, NET)), target_of(NET)).plan
    assert plan.complete and plan.ambiguities == ()
    plan = diagnose(file_of(NET), target_of(under(prefix, NET))).plan
    assert plan.complete and plan.ambiguities == ()
    plan = diagnose(file_of(under("model", NET)), target_of(under("net", NET))).plan
    assert plan.complete and plan.ambiguities == ()


def test_a_wrapped_part_asks_nothing(file_of, target_of):
    ours = {n.replace("norm.", "norm.module."): s for n, s in NET.items()}
    plan = diagnose(file_of(ours), target_of(NET)).plan
    assert plan.complete and plan.ambiguities == ()


def test_a_question_of_several_places_names_them_and_can_be_answered_for_one(file_of, target_of):
    def block(place, numbers):
        return {n: s for i in numbers for n, s in under(f"{place}.{i}", {"weight": (4, 4)}).items()}

    # A third row stands still: not the whole file counts from 1.
    ours = file_of(block("a", (1, 2)) | block("b", (1, 2)) | block("c", (0, 1)))
    goal = target_of(block("a", (0, 1)) | block("b", (0, 1)) | block("c", (0, 1)))
    (question,) = diagnose(ours, goal).plan.ambiguities
    assert question.id == "index-shift" and "The same is asked of b.N" in question.question
    assert diagnose(ours, goal, choose={"index-shift": "shifted"}).plan.complete
    (rest,) = diagnose(ours, goal, choose={"index-shift:a.N": "shifted"}).plan.ambiguities
    assert "b.1 of the file" in rest.question
    with pytest.raises(UsageError, match='"sideways" is no option of "index-shift"'):
        diagnose(ours, goal, choose={"index-shift": "sideways"})


def test_twins_at_two_places_are_two_questions(file_of, target_of):
    ours = {n: s for side in ("x", "y") for kind in ("m", "ema") for n, s in under(f"{side}.{kind}", NET).items()}
    goal = target_of(under("x", NET) | under("y", NET))
    first, second = diagnose(file_of(ours), goal).plan.ambiguities
    answers = {first.id: "x.m", second.id: "y.ema"}
    plan = diagnose(file_of(ours), goal, choose=answers).plan
    assert plan.complete
    taken = {s.source for s in plan.steps if s.target is not None}
    assert taken == {n for n in ours if n.startswith(("x.m.", "y.ema."))}


def test_what_waits_for_an_answer_is_no_second_set_of_weights(shapes, file_of, target_of) -> None:
    """Numbers moved under a wrapper are one question: tensors not placed yet are no copies of the placed ones."""
    net = {f"layers.{i}.{leaf}": (8, 8) for i in range(4) for leaf in ("conv.weight", "proj.weight")}
    net |= {f"norms.{i}.weight": (8,) for i in range(4)} | {"stem.weight": (8, 3)}
    net |= {f"heads.{i}.weight": (2, 8) for i in range(2)}
    moved = {
        name: name if name.startswith("heads") else re.sub(r"\.(\d+)\.", lambda n: f".{int(n[1]) + 1}.", name)
        for name in net
    }
    file = file_of({f"module.{moved[name]}": shape for name, shape in net.items()})
    plan = diagnose(file, target_of(net)).plan
    assert [question.id for question in plan.ambiguities] == ["index-shift"]
    answered = diagnose(file, target_of(net), choose={"index-shift": "shifted"}).plan
    assert answered.complete
    for step in answered.steps:
        assert step.source == f"module.{moved[step.target]}"


def test_a_bare_weight_is_not_put_under_a_name_that_the_file_lacks_unasked(file_of, target_of):
    """A running mean under module. and a norm under another name: nothing says that the one is the other's."""
    ours = {n.replace("norm.", "0."): s for n, s in NET.items()} | {"module.running_mean": (4,)}
    plan = diagnose(file_of(ours), target_of(NET), accept=["extra-tensors"], partial=True).plan
    assert not plan.complete and {question.id for question in plan.ambiguities} == {"rename"}


def test_a_block_without_a_number_is_not_the_one_that_is_left_over(file_of, target_of):
    """layers.module. beside layers.1. and 2.: it was number 0, and all of them moved by one."""
    block = {"conv.weight": (4, 4), "conv.bias": (4,), "norm.weight": (4,), "norm.bias": (4,)}
    ours = {n: s for k in ("module", "1", "2") for n, s in under(f"layers.{k}", block).items()}
    goal = {n: s for k in ("1", "2", "3") for n, s in under(f"layers.{k}", block).items()}
    plan = diagnose(file_of(ours, ordered=False), target_of(goal), accept=["extra-tensors"]).plan
    assert not plan.complete and plan.ambiguities


def test_a_layer_put_into_a_sequential_asks_nothing(file_of, target_of):
    goal = under("conv.0", {"weight": (4, 3)}) | under("conv.1", NORM) | under("fc", {"weight": (2, 4)})
    ours = {n.replace("conv.0.", "conv.module.0."): s for n, s in goal.items()}
    plan = diagnose(file_of(ours), target_of(goal)).plan
    assert plan.complete and plan.ambiguities == ()


def test_parts_under_other_prefixes_ask_nothing_where_nothing_is_left_over(file_of, target_of):
    goal = {"encoder.conv1.weight": (8, 3, 3, 3), "encoder.conv2.weight": (8, 8, 3, 3), "fc.weight": (4, 8)}
    ours = {f"{'head' if n.startswith('fc') else 'model'}.{n}": s for n, s in goal.items()}
    assert diagnose(file_of(ours), target_of(goal)).plan.complete
    # An average's is another set's; and with anything more on either side, the head may be of another network.
    for word in ("ema_head", "teacher", "discriminator", "b"):
        other = {n.replace("head.", f"{word}."): s for n, s in ours.items()}
        assert not diagnose(file_of(other), target_of(goal)).plan.complete, word
    for more, place in (({"head.norm.weight": (8,)}, {}), ({}, {"norm.weight": (8,)})):
        plan = diagnose(file_of(ours | more), target_of(goal | place), accept=["extra-tensors"], partial=True).plan
        assert plan is None or not plan.complete
