"""The words beside the numbers are those that the numbers deserve."""

from __future__ import annotations

import math

import pytest

from inspector.cam.trust.assess import Row, Trust
from inspector.cam.trust.randomise import Stage
from inspector.cam.trust.verdicts import forgetting, standing, steadiness, summary
from inspector.render.trust_files import trust_csv

NAN = math.nan


@pytest.mark.parametrize(
    ("values", "higher", "says"),
    [
        ([0.9, 0.1, 0.2, 0.3], True, "better than all 3 (higher is better)"),
        ([0.9, 0.1, 0.2, 0.3], False, "worse than all 3 (lower is better)"),
        ([0.25, 0.1, 0.2, 0.3], True, "better than 2 of 3 (higher is better)"),
        ([0.25, 0.25, 0.2, 0.3], True, "better than 1 of 3, equal to 1 (higher is better)"),
        ([1.0, 1.0, 1.0, 1.0], True, "the same for all (higher is better)"),
        ([0.25, 0.25, 0.3, 0.3], True, "better than 0 of 3, equal to 1 (higher is better)"),
        ([0.5001, 0.5004, 0.5, 0.5], True, "the same for all (higher is better)"),
        ([0.25, NAN, 0.2, 0.1], True, "better than all 2 (higher is better)"),
        ([0.25, NAN, NAN, 0.5], True, "worse (higher is better)"),
        ([0.25, None, None, None], True, "higher is better"),
        ([NAN, 0.1, 0.2, 0.3], True, "no number for this map"),
        ([0.25, 0.1, 0.2, 0.3], None, "neither is better"),
        ([None, 0.1], True, ""),
    ],
)
def test_where_a_number_stands(values: list[float | None], higher: bool | None, says: str) -> None:
    assert standing(values, higher) == says


@pytest.mark.parametrize(
    ("value", "says"),
    [(0.0, "hardly changes"), (0.2, "changes somewhat"), (1.0, "do not lean on its details"), (NAN, "no number")],
)
def test_steadiness(value: float, says: str) -> None:
    assert says in steadiness(value)


def trust(rows: dict[str, list[float]], *correlations: float) -> Trust:
    made = tuple(
        Row(of=of, values=tuple((name, values[n]) for name, values in rows.items()))
        for n, of in enumerate(("grad-cam", "random", "centre", "edges"))
    )
    stages = tuple(Stage(down_to=f"layer{n}", modules=n + 1, correlation=c) for n, c in enumerate(correlations))
    return Trust(method="grad-cam", layer="layer4", target=0, rows=made, stages=stages, passes=1)


def test_all_measures_together() -> None:
    won, lost, same = [0.9, 0.1, 0.2, 0.3], [0.2, 0.3, 0.3, 0.1], [1.0] * 4
    best = summary(trust({"insertion": won, "road": won, "increase-in-confidence": same}))
    # What is equal for both counts for neither.
    assert best == (
        "This map is better than noise by 2 of 2, than a blob in the middle by 2 of 2, than the edges of the picture "
        "by 2 of 2 measures that tell them apart."
    )
    assert "does not show what the answer rests on" in summary(trust({"insertion": lost, "road": lost}))
    # Lower is better.
    assert "than noise by 1 of 2" in summary(trust({"deletion": won, "road": won}))
    middle = [0.4, 0.1, 0.9, 0.1]
    assert summary(trust({"insertion": middle})).endswith("a picture where it does not tells more.")
    assert summary(trust({"road": same})) == "No measure tells the maps apart."
    assert "nothing to measure" in summary(trust({"road": [NAN, 0.1, 0.2, 0.3]}))


def test_forgetting_in_words() -> None:
    road = {"road": [1.0] * 4}
    assert forgetting(trust(road)) == ""
    assert "as it should" in forgetting(trust(road, 0.5, 0.1))
    assert "does not show what was learned" in forgetting(trust(road, 0.9, 0.8))
    assert "becomes its opposite" in forgetting(trust(road, 0.9, -0.8))
    assert "keeps some of its shape" in forgetting(trust(road, 0.9, 0.4))
    assert "says nothing" in forgetting(trust(road, NAN, NAN))
    assert "Down to layer0, where the last map was left, the rank correlation is 0.20" in forgetting(
        trust(road, 0.2, NAN)
    )
    assert "depends little on which class" in forgetting(trust(road, 0.99, 0.1))


def test_the_table_for_a_spreadsheet_has_every_number() -> None:
    lines = trust_csv(trust({"road": [0.25, NAN, 0.5, 1.0]}, 0.5)).splitlines()
    assert lines[0] == "kind,measure,of,x,value"
    assert lines[1:5] == [
        "value,road,grad-cam,,0.25", "value,road,random,,", "value,road,centre,,0.5", "value,road,edges,,1.0",
    ]  # fmt: skip
    assert lines[5:] == ["randomised,rank-correlation,layer0,1,0.5"]
