"""What a model's answer is, so that it is read rightly, as far as the file says it."""

from __future__ import annotations

from enum import StrEnum

from inspector.checkpoint.stated import told, told_beside
from inspector.checkpoint.types import Checkpoint


class AnswerKind(StrEnum):
    """How the columns of an answer are meant.

    ONE: one class of several, shares by softmax; a single output is a yes or no (sigmoid). SEVERAL: labels that hold or
    not each by itself, sigmoid each. NUMBERS: plain numbers, as a regression gives them, without shares.
    """

    ONE = "one"
    SEVERAL = "several"
    NUMBERS = "numbers"


# As transformers' configurations name them (PretrainedConfig.problem_type).
_PROBLEMS = {
    "single_label_classification": AnswerKind.ONE,
    "multi_label_classification": AnswerKind.SEVERAL,
    "regression": AnswerKind.NUMBERS,
}


def stated_answer(checkpoint: Checkpoint | None) -> AnswerKind | None:
    """What the file itself, or the config.json beside it, calls its problem; None where neither does."""
    for found in (told(checkpoint, "problem_type"), told_beside(checkpoint, "config.json", "problem_type")):
        if isinstance(found, str) and found in _PROBLEMS:
            return _PROBLEMS[found]
    return None


def infer_answer(checkpoint: Checkpoint | None) -> AnswerKind:
    """The same; one class of several where nobody says, as most models for pictures are."""
    return stated_answer(checkpoint) or AnswerKind.ONE
