"""The diagnosis on a terminal: folded lists, the page's order, nothing that a file could smuggle in."""

from __future__ import annotations

import io

from rich.console import Console

from inspector.findings import FindingKind, Severity
from inspector.keys.checks.repair import AMBIGUOUS
from inspector.keys.placing.left_over import left_over
from inspector.keys.report import Ambiguity, Cost, Evidence, KeyReport, RepairPlan, RuleUse, Step, StepKind
from inspector.render.repair_text import keys_text

CUT = FindingKind("cut", Severity.WARNING, "Cut short")


def _report(**more: object) -> KeyReport:
    given = {
        "target": "torchvision/resnet18",
        "state_dict": (),
        "matched": (),
        "missing": (),
        "unexpected": (),
        "reshaped": (),
        "loads": False,
        "says": "It fits.",
        "findings": (),
        "plan": None,
    } | more
    return KeyReport(**given)  # type: ignore[arg-type]


def _plan(**more: object) -> RepairPlan:
    given = {
        "target": "t",
        "state_dict": (),
        "steps": (),
        "rules": (),
        "ambiguities": (),
        "needs_accept": (),
        "missing": (),
        "complete": False,
    } | more
    return RepairPlan(**given)  # type: ignore[arg-type]


def _text(report: KeyReport) -> str:
    out = io.StringIO()
    Console(file=out, width=160, highlight=False).print(keys_text(report))
    return out.getvalue()


def test_hundreds_of_keys_are_a_few_lines() -> None:
    names = tuple(f"layer{n}.{i}.conv.{leaf}" for n in range(1, 5) for i in range(50) for leaf in ("weight", "bias"))
    text = _text(_report(missing=names, unexpected=("extra",), refusal="Other network.", says="Other network."))
    assert text.count("\n") < 20
    assert "Missing  400 keys" in text
    assert "   100  layer3.*.conv.{weight,bias}" in text
    assert "By name and shape: 0 fit, 400 missing, 1 unexpected, 0 of another shape." in text
    assert text.count("Other network.") == 1


def test_beyond_some_patterns_the_rest_is_counted() -> None:
    text = _text(_report(unexpected=tuple(f"part{chr(97 + i)}.w" for i in range(20))))
    assert "and 12 more; --json lists every one" in text


def test_a_question_that_is_the_answer_is_said_once_with_how_it_is_answered() -> None:
    question = Ambiguity(id="twins", question="Which one?", options=(("ema", "the averaged"), ("raw", "the trained")))
    other = Ambiguity(id="order", question="In which order?", options=(("qkv", "q first"), ("kqv", "k first")))
    told = AMBIGUOUS.found("Which one?", remedy="Choose twins=ema or twins=raw.")
    cut = CUT.found("The file was cut short.")
    text = _text(_report(says="Which one?", plan=_plan(ambiguities=(question,)), findings=(told,)))
    assert text.count("Which one?") == 1 and "Choose twins" not in text and "No findings" not in text
    assert text.index("Which one? (ambiguous)") < text.index("--choose twins=ema  the averaged")
    text = _text(
        _report(
            says="Which one? (2 questions open) But it was cut.",
            plan=_plan(ambiguities=(question, other)),
            findings=(told, cut, AMBIGUOUS.found("In which order?")),
        )
    )
    assert text.count("Which one?") == text.count("In which order?") == 1
    assert "It was cut." in text and "The file was cut short." in text


def test_without_a_question_the_answer_and_all_findings_stand() -> None:
    text = _text(_report(says="Which one? is a name.", findings=(CUT.found("The file was cut short."),)))
    assert "Which one? is a name." in text and "The file was cut short." in text
    assert "No findings." in _text(_report())


def test_rules_come_with_three_examples_behind_the_questions_and_before_what_is_left() -> None:
    use = RuleUse(
        id="wrapper-segment",
        says='drop the segment "module"',
        cost=Cost.LOSSLESS,
        count=3,
        examples=(("module.a", "a"), ("module.b", "b"), ("module.c", "c")),
        accepted=True,
    )
    question = Ambiguity(id="twins", question="Which one?", options=(("ema", "the averaged"), ("raw", "the trained")))
    text = _text(_report(plan=_plan(rules=(use,), ambiguities=(question,), missing=("fc.weight",), complete=False)))
    order = [
        "Target  torchvision/resnet18",
        "It fits.",
        "Which one?",
        "--choose twins=ema",
        'drop the segment "module"',
        "module.c -> c",
        "By name and shape",
    ]
    order += ["Missing  1 key", "fc.weight"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_shapes_are_told_once_per_pattern() -> None:
    reshaped = (*((f"l.{i}.w", (4, i + 1), (8, i + 1)) for i in range(3)), ("head.w", (10, 2), (4, 2)))
    text = _text(_report(reshaped=reshaped))
    assert "l.*.w  4x1 in the file, 8x1 in the target and alike" in text
    assert "head.w  10x2 in the file, 4x2 in the target\n" in text
    assert "Of another shape  4 tensors" in text


def test_names_cannot_colour_or_clear_the_terminal() -> None:
    text = _text(_report(unexpected=("a[bold]b[/bold]", "\x1b[2Jx.w", "[/]")))
    assert "\x1b" not in text
    assert "a[bold]b[/bold]" in text


def test_what_a_plan_settles_is_not_left_over() -> None:
    step = Step(
        kind=StepKind.RENAME,
        source="module.a",
        target="a",
        rule="r",
        reason="",
        cost=Cost.LOSSLESS,
        evidence=Evidence.RULE,
    )
    as_is = {"missing": ("a", "b"), "unexpected": ("module.a", "other", "epoch")}
    left = left_over(_report(**as_is, plan=_plan(steps=(step,), missing=("b",), others=("epoch",))))
    assert (left.missing, left.initial, left.unexpected) == (("b",), (), ("other",))
    part = left_over(_report(**as_is, plan=_plan(steps=(step,), missing=("b",), partial=True)))
    assert (part.missing, part.initial) == ((), ("b",)) and not part.nothing
    refused = left_over(_report(**as_is))
    assert refused.missing == ("a", "b") and refused.unexpected == as_is["unexpected"]
    assert left_over(_report(missing=("a",), plan=_plan(steps=(step,)))).nothing
