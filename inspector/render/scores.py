"""A score in words, wherever one is shown."""

from __future__ import annotations

from inspector.cam.report import Score
from inspector.cam.targets.answers import AnswerKind
from inspector.units import human_share

READ_AS = {
    AnswerKind.ONE: "one class of several",
    AnswerKind.SEVERAL: "several labels at once",
    AnswerKind.NUMBERS: "plain numbers",
}


def share_text(score: Score) -> str:
    """ "97 %", or the number itself where it is no share."""
    return f"{score.logit:.4g}" if score.probability is None else human_share(score.probability)
