"""A tensor and a place that were left over, of one shape and with a word in common: offered as a pair, never taken."""

from __future__ import annotations

import pytest

from inspector.keys.diagnose import diagnose
from inspector.keys.report import Evidence

BODY = {f"fc{i}.{n}": s for i in (1, 2, 3) for n, s in (("weight", (8, 8)), ("bias", (8,)))}
WHOLE = BODY | {"fc.weight": (3, 8)}
FILE = BODY | {"fc_param": (3, 8)}


def test_it_is_asked_and_placed_by_the_users_word(file_of, target_of):
    report = diagnose(file_of(FILE), target_of(WHOLE))
    (question,) = report.plan.ambiguities
    assert question.id == "related-names"
    assert "fc_param has no place in the target, and fc.weight no tensor in the file" in question.question
    assert "Linear, 8 -> 3" in question.question
    assert not report.plan.complete
    plan = diagnose(file_of(FILE), target_of(WHOLE), choose={"related-names": "same"}).plan
    assert plan.complete
    step = next(s for s in plan.steps if s.target == "fc.weight")
    assert (step.source, step.evidence) == ("fc_param", Evidence.CHOSEN)


def test_said_to_be_something_else_it_is_placed_nowhere(file_of, target_of):
    plan = diagnose(file_of(FILE), target_of(WHOLE), choose={"related-names": "other"}).plan
    assert plan.missing == ("fc.weight",)
    assert all(s.target is None for s in plan.steps if s.source == "fc_param")


@pytest.mark.parametrize("extra", [{"fc_old": (3, 8), "fc_new": (3, 8)}, {"fc_param": (8, 3)}, {"zebra": (3, 8)}])
def test_with_two_of_them_another_shape_or_no_word_in_common_there_is_no_such_question(extra, file_of, target_of):
    report = diagnose(file_of(BODY | extra), target_of(WHOLE))
    assert all(not q.id.startswith("related-names") for q in report.plan.ambiguities)


def test_the_gap_of_one_set_is_not_filled_from_another(file_of, target_of):
    """A whole second set lies beside one without a bias: the bias of the second is no tensor of the first."""
    network = {"embedding.weight": (7, 4), "attention.weight": (4, 4), "attention.bias": (4,), "fc.weight": (5, 4)}
    second = {f"model.{name}": shape for name, shape in network.items()}
    first = {f"model.encoder.{name}": shape for name, shape in network.items() if name != "attention.bias"}
    report = diagnose(file_of({**first, **second}), target_of({f"encoder.{n}": s for n, s in network.items()}))
    assert report.plan is not None
    assert report.plan.missing == ("encoder.attention.bias",)
    assert not report.plan.ambiguities
