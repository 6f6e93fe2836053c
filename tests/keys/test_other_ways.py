"""Which is which of a few parts that order alone brings together: every way is an answer."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.placing.by_order import IN_ORDER, LEAVE_OUT

BODY = {"embed.weight": (30, 8), "trunk.0.weight": (8, 8), "trunk.0.bias": (8,), "trunk.2.weight": (8, 8)}
LINEAR = {"weight": (8, 8), "bias": (8,)}
ACCEPT = {"same-order"}


def network(*parts, inside=LINEAR, beside=BODY):
    named = {f"{part}.{own}" if own else part: shape for part in parts for own, shape in inside.items()}
    return beside | named | {"out_head.weight": (4, 8)}


def placed(report):
    return {step.target: step.source for step in report.plan.steps if step.target is not None}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("upsample", "downsample"), ("down", "up")),
        (("cls_subnet", "bbox_subnet"), ("regression", "classification")),
        (("premise", "hypothesis"), ("enc_h", "enc_p")),
    ],
)
def test_two_parts_in_order_can_be_said_to_be_the_other_way_round(ours, theirs, file_of, target_of):
    names, target = file_of(network(*ours)), target_of(network(*theirs))
    (question,) = diagnose(names, target).plan.ambiguities
    assert question.id == "symmetric"
    in_order, exchanged, out = (option for option, _ in question.options)
    assert (in_order, out) == (IN_ORDER, LEAVE_OUT)
    plan = diagnose(names, target, choose={"symmetric": exchanged}).plan
    assert plan.complete and not plan.needs_accept
    there = placed(diagnose(names, target, choose={"symmetric": exchanged}))
    assert there[f"{theirs[1]}.weight"] == f"{ours[0]}.weight" and there[f"{theirs[0]}.bias"] == f"{ours[1]}.bias"


def test_one_answer_is_for_all_layers(file_of, target_of):
    ours = network(*(f"blocks.{n}.{part}" for n in range(2) for part in ("flow_x", "flow_y")))
    theirs = network(*(f"blocks.{n}.{part}" for n in range(2) for part in ("vertical", "horizontal")))
    report = diagnose(file_of(ours), target_of(theirs))
    (question,) = report.plan.ambiguities
    other = next(option for option, says in question.options if "flow_x is blocks.N.horizontal" in says)
    there = placed(diagnose(file_of(ours), target_of(theirs), choose={question.id: other}))
    assert there["blocks.1.horizontal.weight"] == "blocks.1.flow_x.weight"


@pytest.mark.parametrize(
    ("ours", "theirs", "inside"),
    [
        (("gamma_1", "gamma_2"), ("ls2.gamma", "ls1.gamma"), {"": (8,)}),
        (("b.0.gamma_1", "b.0.gamma_2", "b.1.gamma_1", "b.1.gamma_2"), ("b.0.s2", "b.0.s1", "b.1.s2", "b.1.s1"), None),
        (("first", "second", "third"), ("layers.2", "layers.1", "layers.0"), LINEAR),
        (("fpn_p5", "fpn_p4", "fpn_p3"), ("fpn.0", "fpn.1", "fpn.2"), LINEAR),
        (("conv3_block", "conv2_block", "conv1_block"), ("parts.0", "parts.1", "parts.2"), LINEAR),
    ],
)
def test_an_order_against_the_numbers_is_asked_about_and_the_numbers_can_be_chosen(
    ours, theirs, inside, file_of, target_of
):
    inside = inside or {"": (8,)}
    names, target = file_of(network(*ours, inside=inside)), target_of(network(*theirs, inside=inside))
    report = diagnose(names, target, accept=ACCEPT)
    assert not report.plan.complete
    (question,) = report.plan.ambiguities
    assert question.id == "against-numbers"
    own = next(iter(inside))
    end = f".{own}" if own else ""
    first, last = sorted(ours)[0], sorted(theirs)[0]
    by_number = diagnose(names, target, choose={"against-numbers": "by-number"})
    assert by_number.plan.complete and placed(by_number)[last + end] == first + end
    by_order = diagnose(names, target, choose={"against-numbers": IN_ORDER}, accept=ACCEPT)
    assert by_order.plan.complete and placed(by_order)[theirs[0] + end] == ours[0] + end


def test_numbers_that_rise_on_both_sides_are_no_question(file_of, target_of):
    names = network("gamma_1", "gamma_2", inside={"": (8,)})
    report = diagnose(file_of(names), target_of(network("ls1.scales", "ls2.scales", inside={"": (8,)})), accept=ACCEPT)
    assert not [question for question in report.plan.ambiguities if question.id == "against-numbers"]


@pytest.mark.parametrize(("old", "new"), [("fc_old", "fc_new"), ("fc_backup", "fc_best"), ("prev_fc", "cur_fc")])
def test_two_of_one_name_with_a_word_more_are_asked_about(old, new, file_of, target_of):
    body = BODY | {"out_head.weight": (4, 8)}
    fc = {f"fc.{own}": shape for own, shape in LINEAR.items()}
    ours = body | {f"{name}.{own}": shape for name in (old, new) for own, shape in LINEAR.items()}
    (question,) = diagnose(file_of(ours), target_of(body | fc)).plan.ambiguities
    assert question.id == "related-names:which" and {option for option, _ in question.options} == {old, new, "other"}
    chosen = {"related-names:which": new}
    report = diagnose(file_of(ours), target_of(body | fc), choose=chosen)
    # What its word says of the numbers is asked as of any other.
    chosen |= {question.id: "as-placed" for question in report.plan.ambiguities}
    report = diagnose(file_of(ours), target_of(body | fc), choose=chosen)
    assert report.plan.complete and placed(report)["fc.weight"] == f"{new}.weight"


def test_what_was_left_out_of_a_mixture_stays_out(file_of, target_of):
    ours = BODY | {f"{name}.fc.{own}": shape for name in ("old", "new") for own, shape in LINEAR.items()}
    target = target_of(BODY | {f"fc.{own}": shape for own, shape in LINEAR.items()})
    report = diagnose(file_of(ours), target, choose={"collision": "new", "mixture": "leave-out"})
    assert not report.plan.complete and "fc.weight" not in placed(report)


def test_what_is_no_other_name_is_not_offered_by_order_instead(file_of, target_of):
    inside = {f"{n}.{own}": shape for n in (0, 2) for own, shape in LINEAR.items()}
    beside = {"inp.weight": (8, 7)}
    names, target = (
        beside | {f"{part}.{own}": shape for own, shape in inside.items()} for part in ("neck", "backbone")
    )
    report = diagnose(file_of(names), target_of(target), choose={"rename": "leave-out"})
    assert not report.plan.complete and "same-order" not in report.plan.needs_accept
