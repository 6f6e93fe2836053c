"""Sentences that named something else than what differs: each with the numbers that do."""

from __future__ import annotations

import pytest

from inspector.errors import UsageError
from inspector.keys.diagnose import diagnose

BODY = {f"body.{i}.{n}": s for i in range(3) for n, s in (("weight", (8, 8)), ("bias", (8,)))}
HEAD = ("head-mismatch",)


def test_one_name_on_both_sides_has_something_in_common(file_of, target_of):
    """It said that word.weight and word.weight have nothing in common."""
    says = diagnose(file_of({"word.weight": (56, 8)}), target_of({"word.weight": (50, 8)})).says
    assert "nothing in common" not in says
    assert "word.weight first: 56x8 in the file, 50x8 in the target" in says
    assert says.startswith("The one tensor has another shape")


@pytest.mark.parametrize("name", ["positions", "words", "pos", "embed", "lookup"])
def test_a_table_of_other_rows_is_no_head(name, file_of, target_of):
    ours = {f"{name}.weight": (77, 8)} | BODY
    report = diagnose(file_of(ours), target_of({f"{name}.weight": (50, 8)} | BODY), accept=HEAD)
    assert report.plan is None
    assert "classes" not in report.says
    assert f"{name}.weight first: 77x8 in the file, 50x8 in the target" in report.says


def test_a_tied_vocabulary_is_no_head_either(file_of, target_of):
    def sides(rows):
        return {"embed.weight": (rows, 8)} | BODY | {"lm_head.weight": (rows, 8)}

    report = diagnose(file_of(sides(56)), target_of(sides(50)), accept=HEAD)
    assert "56x8 in the file, 50x8 in the target" in report.says


@pytest.mark.parametrize("head", ["fc", "head.1", "body.9", "classifier.6"])
def test_a_head_of_another_size_says_both_sizes(head, file_of, target_of):
    file = file_of(BODY | {f"{head}.weight": (3, 8), f"{head}.bias": (3,)})
    report = diagnose(file, target_of(BODY | {"fc.weight": (2, 8), "fc.bias": (2,)}), accept=HEAD)
    assert "the head (3 classes in the file, 2 in the target) stays untrained" in report.says
    assert "deeper" not in report.says


def test_a_head_of_another_size_under_names_that_say_nothing(file_of, target_of):
    target = BODY | {"fc.weight": (2, 8), "fc.bias": (2,)}
    shapes = [*BODY.values(), (3, 8), (3,)]
    says = diagnose(file_of({f"t{i}": s for i, s in enumerate(shapes)}), target_of(target)).says
    assert "Order would place all but t6, where the target has fc.weight: 3 classes in the file, 2 in the" in says


def test_no_layer_is_asked_to_be_a_negative_number(file_of, target_of):
    """Of blocks 0 to 5 the last three fit the target's 0 to 2: 0 would be its number -3."""
    wide = {"a.weight": (8, 8), "b.weight": (8, 4), "c.weight": (4, 8)}
    narrow = {"a.weight": (6, 8), "b.weight": (8, 4), "c.weight": (4, 6)}

    def blocks(first, kinds):
        return {f"blocks.{first + i}.{n}": s for i, kind in enumerate(kinds) for n, s in kind.items()}

    report = diagnose(file_of(blocks(0, [narrow] * 3 + [wide] * 3)), target_of(blocks(0, [wide] * 3)))
    questions = [q.question for q in report.plan.ambiguities] if report.plan is not None else []
    assert any("is blocks.3 of the file the target's number 0" in q for q in questions)
    assert "number -" not in f"{report.says} {questions}"


def test_a_key_that_is_a_modules_own_name_is_told(file_of, target_of):
    """torch before 2.5 passes it in silence (pytorch#123510)."""
    for key in ("body", "body.0", "body.0.weight.more"):
        report = diagnose(file_of(BODY | {key: (3,)}), target_of(BODY))
        assert report.unexpected == (key,)
        assert not report.loads


def test_an_answer_to_what_nothing_asks_is_still_refused(file_of, target_of):
    with pytest.raises(UsageError, match='There is no question "symmetric"'):
        diagnose(file_of(BODY), target_of(BODY), choose={"symmetric": "in-order"})


def test_names_that_share_words_are_not_said_to_have_nothing_in_common(file_of, target_of):
    ours = {f"h.{i}.self_attn.fused.weight": (12, 4) for i in range(2)}
    theirs = {f"blocks.{i}.attention.{p}.weight": (4, 4) for i in range(2) for p in ("q", "k", "v")}
    report = diagnose(file_of(ours), target_of(theirs))
    assert "nothing in common" not in report.refusal
    assert '"attn"' in report.refusal
