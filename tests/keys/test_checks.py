"""Checks of a drafted repair: one refusal, the first of the list; every finding with the title of its kind."""

from __future__ import annotations

from inspector.findings import Severity
from inspector.keys.checks import CHECKS, REFUSALS
from inspector.keys.checks.entry import NO_FIT
from inspector.keys.diagnose import diagnose
from inspector.keys.partial import PARTS
from inspector.keys.phrases import plainest_phrases
from inspector.keys.placing.stacks import is_block, stacks
from inspector.keys.placing.tree import Leaf, before_shared_end, exchanged, grow
from inspector.keys.refusals import MISFITS
from inspector.keys.report import Ambiguity
from inspector.keys.rules import RULES
from inspector.keys.rules.entry import Questions
from inspector.keys.stand_ins import stand_in


def test_what_refuses_makes_one_kind_of_finding_and_nothing_else_does():
    assert {check.kinds for check in (*MISFITS, *PARTS, *REFUSALS)} == {(NO_FIT,)}
    assert NO_FIT not in {kind for check in CHECKS for kind in check.kinds}


def test_the_first_check_that_refuses_is_the_refusal(file_of, target_of):
    """Flat parameters of FSDP beside a weight with its scale: either refuses alone."""
    scaled = {"fc.weight": (2, 4), "fc.weight_scale": (2,)}
    report = diagnose(file_of({"_flat_param": (64,)} | scaled), target_of({"fc.weight": (2, 4)}))
    assert report.plan is None and report.refusal == report.says and "FSDP's flat parameters" in report.says
    assert [finding.says for finding in report.findings if finding.id == "no-fit"] == [report.says]
    assert "scaled float8" in diagnose(file_of(scaled), target_of({"fc.weight": (2, 4)})).refusal


def test_every_finding_has_the_title_of_its_kind(file_of, target_of):
    goal = {"fc.weight": (2, 4), "fc.bias": (2,)}
    names = {f"module.{name}": shape for name, shape in goal.items()} | {
        "module.criterion.weight": (2,),
        "module.fc.total_ops": (1,),
    }
    report = diagnose(file_of(names, path=("net",)), target_of(goal))
    assert {finding.id: (finding.severity, finding.title) for finding in report.findings} == {
        "wrapper-segment": (Severity.WARNING, "Wrapper segments"),
        "bookkeeping-buffers": (Severity.INFO, "Bookkeeping buffers"),
        "extra-tensors": (Severity.WARNING, "Tensors without a place"),
        "loss-or-metric": (Severity.INFO, "Tensors of a loss, a metric or a probe"),
        "wrapper-dict": (Severity.INFO, "Weights that lie below the top of the file"),
    }


def test_a_question_of_several_places_is_written_once_and_in_full():
    questions = Questions(answers={})
    asked = Ambiguity(id="way", question="Left or right?", options=(("left", "left"), ("right", "right")))
    for place in ("a", "b", "c", "d", "e"):
        assert questions.ask(asked, place=place) is None
    (question,) = questions.open
    assert question.places == ("a", "b", "c", "d", "e") and questions.unanswered[0].question == "Left or right?"
    says = "Left or right? The same is asked of b, c, d and 1 more; way:b answers for one alone."
    assert question.question == says


def test_stacks_are_numbered_children_by_what_stands_before_the_number():
    names = ["0.weight", "1.weight", "net.layer1.a", "net.layer1.b", "net.layer1.c", "net.layer1.d", "net.layer2.a"]
    found = {stack.place: stack.blocks for stack in stacks(grow(Leaf(name, (2,)) for name in names))}
    assert {place: list(blocks) for place, blocks in found.items()} == {"": [0, 1], "net.layer": [1, 2]}
    assert is_block(found["net.layer"][1]) and not is_block(found["net.layer"][2])


def test_what_stands_before_the_end_that_names_share():
    assert before_shared_end([("a", "b", "w"), ("c", "b", "w")]) == [("a",), ("c",)]
    assert before_shared_end([("b", "w"), ("c", "b", "w")]) == [(), ("c",)]
    assert before_shared_end([("a",), ("b",), ("a",)]) == [("a",), ("b",), ("a",)]


def test_of_dotted_names_it_is_the_same():
    names = ["a.b.w", "c.b.w", "b.w", "w", "bb.w", "a.b.w.w", "", ".w", "a."]
    for ours in names:
        for theirs in names:
            apart = before_shared_end([tuple(ours.split(".")), tuple(theirs.split("."))])
            assert list(exchanged(ours, theirs)) == apart, (ours, theirs)


def test_sides_that_correspond_are_not_cut():
    """A stack of layers beside one of them looks like a whole and a part; where each has its place it is neither."""
    shapes = {"q_proj.weight": (4, 8), "k_proj.weight": (4, 8), "v_proj.weight": (4, 8), "qkv.weight": (12, 8)}
    leaves = [Leaf(f"module.attn.{name}", shape) for name, shape in shapes.items()]
    places = [Leaf(f"attn.{name}", shape) for name, shape in shapes.items()]
    stands = stand_in(leaves, places, rules=RULES, questions=Questions(answers={}))
    assert (stands.leaves, stands.places, stands.ours, stands.theirs) == (leaves, places, {}, {})
    # Without one of them on our side they no longer do, and what the target has in one is looked at in parts.
    parted = stand_in(leaves[:3], places[3:], rules=RULES, questions=Questions(answers={}))
    assert [place.name for place in parted.places] == [f"attn.{name}" for name in list(shapes)[:3]]


def test_the_plainest_phrases_leave_as_little_wrong_as_they_can(file_of, target_of):
    report = diagnose(file_of({"module.a": (2,), "module.b": (3,)}), target_of({"a": (2,), "b": (3,)}))
    phrases, wrong = plainest_phrases(report.plan.rules, {"module.a": "a"}, rules=RULES, most=10)
    assert [phrase.apply("module.a") for phrase in phrases] == ["a"] and wrong == {}
    assert plainest_phrases(report.plan.rules, {"a": "b"}, rules=RULES, most=10) == ((), {"a": "b"})
    assert plainest_phrases(report.plan.rules, {"module.a": "a"}, rules=RULES, most=0) == ((), {"module.a": "a"})
