"""Scores of an answer by hand, as each kind of answer is read, in the report, the table and in words."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam import describe
from inspector.cam.describe import Setting, scores_of
from inspector.cam.engine.maps import Axes
from inspector.cam.explain import explain, explain_many
from inspector.cam.grid import explain_grid
from inspector.cam.report import Preprocessing, Score
from inspector.cam.spec import MapRequest
from inspector.cam.targets.answers import AnswerKind
from inspector.render.explained_table import COLUMNS, row_of
from inspector.render.scores import share_text

PLAIN = Preprocessing(
    resize=None, crop=None, mean=(0.0,) * 3, std=(1.0,) * 3, channels=3, interpolation="bilinear", source="",
    assumed=False,
)  # fmt: skip
ONE, SEVERAL, NUMBERS = AnswerKind


class Fixed(nn.Module):
    """Answers log 1, log 3, log 4 for a white picture."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1, bias=False)
        nn.init.constant_(self.conv.weight, 1 / 3)
        self.values = nn.Parameter(torch.tensor([0.0, math.log(3.0), math.log(4.0)]))

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).mean(dim=(2, 3)) * self.values


@pytest.mark.parametrize(
    ("kind", "shares"),
    [(ONE, [1 / 8, 3 / 8, 4 / 8]), (SEVERAL, [1 / 2, 3 / 4, 4 / 5]), (NUMBERS, [None, None, None])],
)
def test_every_way_to_ask_reads_the_answer_alike(kind: AnswerKind, shares: list[float | None]) -> None:
    model, white = Fixed().eval(), Image.new("RGB", (8, 8), (255, 255, 255))
    made = explain(model, white, preprocessing=PLAIN, layer="conv", answer=kind)
    setting = Setting(preprocessing=PLAIN, answer=kind)
    (batched,) = explain_many(model, [white], MapRequest(layers=("conv",)), setting)
    (cell,) = explain_grid(model, white, Axes(layers=["conv"]), setting).maps
    for one in (made, batched, cell):
        assert one.answer is kind
        # The best is the highest, however it is read.
        assert [score.index for score in one.scores] == [2, 1, 0]
        assert one.target.index == 2
        found = {score.index: score.probability for score in one.scores}
        for index, share in enumerate(shares):
            assert found[index] == (None if share is None else pytest.approx(share, rel=1e-6))
    row = row_of(made, checkpoint="a", picture="b", threshold=0.5)
    of = dict(zip(COLUMNS, row, strict=True))
    assert of["answer"] == kind.value
    assert of["probability"] == ("" if shares[2] is None else f"{shares[2]:.7g}")
    assert of["logit"] == f"{math.log(4.0):.7g}"


def test_a_report_makes_words_of_the_scores_that_it_tells_and_of_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 classes each map of a table of 50 made a thousand."""
    made: list[int] = []

    def counted(**fields: Any) -> Score:
        made.append(fields["index"])
        return Score(**fields)

    monkeypatch.setattr(describe, "Score", counted)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1000))
    setting = Setting(preprocessing=PLAIN, top=3)
    (found,) = explain_many(
        model, [Image.new("RGB", (8, 8), (255, 255, 255))], MapRequest(layers=("0",)), setting, targets=7
    )
    assert found.target.index == 7 and len(found.scores) == 3
    assert sorted(made) == sorted([7, *(score.index for score in found.scores)])


def test_in_words() -> None:
    logits = torch.tensor([-12.5, 0.25])
    assert [share_text(score) for score in scores_of(logits, (), NUMBERS)] == ["0.25", "-12.5"]
    assert share_text(scores_of(torch.tensor([0.0, 0.0]), (), ONE)[0]) == "50.0 %"
    # A single output that is a number is no yes and no.
    assert scores_of(torch.tensor([37.0]), (), NUMBERS)[0].probability is None
    assert scores_of(torch.tensor([0.0]))[0].probability == 0.5


def test_an_answer_that_is_no_number_is_still_described() -> None:
    scores = scores_of(torch.tensor([math.nan, 1.0]), ("a", "b"), SEVERAL)
    assert [score.index for score in scores] == [1, 0]
    assert scores[0].probability == pytest.approx(1 / (1 + math.exp(-1)))
