"""What the numbers mean, in words, for people who see one map: page and terminal say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from inspector.cam.trust.assess import CENTRE, EDGES, RANDOM, Row, Trust
from inspector.cam.trust.chance import LEVEL
from inspector.cam.trust.measures import MEASURES

# What the maps that know nothing are called.
NAMES = {RANDOM: "noise", CENTRE: "a blob in the middle", EDGES: "the edges of the picture"}
# Rank correlations: above, a map is hardly another one; below, it has little left in common.
_ALIKE, _APART = 0.5, 0.3
# Of a map's own size.
_STEADY, _SHAKY = 0.1, 0.5
# Numbers that look the same in the table are the same.
_DIGITS = 3
# Of the draws of noise, from their mean (`NOISE_DRAWS`).
DEVIATIONS = 3
# Measures that are 1 or 0 of one map.
YES_OR_NO = ("increase-in-confidence", "pointing")
_UNFIT = (
    "A map that does no better than one that knows nothing does not show what the answer rests on: try the suggested "
    "layer, another method or another picture before you rely on it."
)


def standing(values: Sequence[float | None], higher: bool | None, margins: Sequence[float] = ()) -> str:
    """Where the first value stands among the others. higher: whether more is better, None for neither. margins: by
    how much it has to differ from each of the others, () for 0."""
    own, others = values[0], _numbers(values[1:])
    if own is None:
        return ""
    if math.isnan(own):
        return "no number for this map"
    side = {True: "higher is better", False: "lower is better", None: "neither is better"}[higher]
    if higher is None or not others:
        return side
    pairs = zip(values[1:], margins or [0.0] * (len(values) - 1), strict=True)
    better, same = _beaten(own, others, higher, [m for other, m in pairs if other is not None and other == other])
    if better == len(others):
        says = f"better than all {len(others)}" if better > 1 else "better"
    elif same == len(others):
        says = "the same for all"
    elif not better and not same:
        says = f"worse than all {len(others)}" if len(others) > 1 else "worse"
    else:
        equal = "not told apart from" if any(margins) else "equal to"
        says = f"better than {better} of {len(others)}" + (f", {equal} {same}" if same else "")
    return f"{says} ({side})"


def steadiness(value: float | None) -> str:
    """The same for the sensitivity, which no other map has."""
    if value is None:
        return ""
    if math.isnan(value):
        return "no number for this map"
    if value >= _SHAKY:
        return "changes a lot: do not lean on its details (lower is better)"
    return f"{'hardly changes' if value < _STEADY else 'changes somewhat'} (lower is better)"


def still(trust: Trust) -> bool:
    """Whether the answer hardly depends on the picture, so that no measure says anything of any map."""
    return trust.chance is not None and not trust.chance.moves


class Verdict(StrEnum):
    """What is said of a map as a whole, the good one first."""

    BETTER = "better than noise"
    NOISE = "no better than noise"
    EMPTY = "the same everywhere"
    STILL = "the answer hardly depends on the picture"
    CHANGES = "another map each time"
    FAILED = "no map"


def verdict_of(trust: Trust) -> Verdict:
    """trust: with the test by chance. A worse reason comes before a milder one."""
    if trust.chance is None:
        raise ValueError("a map without the test by chance has no verdict")
    if still(trust):
        return Verdict.STILL
    if trust.void:
        return Verdict.CHANGES
    if math.isnan(trust.chance.correlation):
        return Verdict.EMPTY
    return Verdict.BETTER if trust.chance.beats_noise else Verdict.NOISE


def is_bad(trust: Trust) -> bool:
    """Whether the map is no better than noise, or cannot be, or the map is another one each time."""
    return bool(trust.void) if trust.chance is None else verdict_of(trust) is not Verdict.BETTER


def summary(trust: Trust) -> str:
    """What was measured of the map beside maps that know nothing, and what a bad outcome means, the worst first."""
    if trust.chance is None:
        return _counted(trust)
    if not trust.chance.moves:
        return (
            f"The answer hardly depends on the picture: covered in part, {trust.chance.covers} times, it stays between "
            f"{trust.chance.lowest:.3f} and {trust.chance.highest:.3f}. So no map can show what it rests on, and no "
            "measure tells one map from another. See whether the model is trained and the picture prepared as for it."
        )
    counted = _counted(trust)
    if math.isnan(trust.chance.correlation):
        return counted
    part = f"with parts of the picture covered, the answer follows the heat in sight by {trust.chance.correlation:.2f}"
    rest = f"{100 * trust.chance.share:.1f} % of random maps do as well ({part}, a correlation)"
    if trust.chance.beats_noise:
        return f"Better than noise: {rest}. {counted}"
    return f"No better than noise: {rest}; {100 * LEVEL:.0f} % is the limit. {_UNFIT} {counted}"


def _counted(trust: Trust) -> str:
    columns = [dict(row.values) for row in trust.rows]
    sides = {measure.id: measure.higher for measure in MEASURES if measure.higher is not None}
    sides |= {"energy": True, "pointing": True}
    own = {name: columns[0][name] for name in sides if name in columns[0]}
    counts: list[tuple[str, int, int]] = []  # of, measures by which the map is better, measures that tell them apart
    for row, column in zip(trust.rows[1:], columns[1:], strict=True):
        found = [
            _beaten(value, [column[name]], sides[name], [margin(row, name)])
            for name, value in own.items()
            if not math.isnan(value) and name in column and not math.isnan(column[name])
        ]
        apart = [better for better, same in found if not same]
        if apart:
            counts.append((row.of, sum(apart), len(apart)))
    if not counts:
        if any(math.isnan(value) for value in own.values()):
            return (
                "The map is the same everywhere or empty, so there is nothing to measure. Try another layer or method."
            )
        return "No measure tells the maps apart."
    listed = ", ".join(f"than {NAMES.get(of, of)} by {better} of {total}" for of, better, total in counts)
    says = f"This map is better {listed} measures that tell them apart."
    weak = {of for of, better, total in counts if 2 * better <= total}
    # Where chance was tested, that is the verdict on noise; and of a shape on a plain ground the edges know a lot.
    if trust.chance is not None and EDGES in weak:
        says += (
            " The edges of the picture do as well: this picture alone does not tell whether it shows more than them."
        )
    elif trust.chance is None and weak - {CENTRE}:
        says += f" {_UNFIT}"
    elif CENTRE in weak:
        says += (
            " Where the thing stands in the middle, a blob there is hard to beat: a picture where it does not tells "
            "more."
        )
    return says


def forgetting(trust: Trust) -> str:
    """What the randomisation test says; "" without it."""
    if trust.void:
        return trust.void
    if trust.stages and still(trust):
        return "The answer hardly depends on the picture, so that forgetting says nothing of what was learned."
    found = [(stage, stage.correlation) for stage in trust.stages if not math.isnan(stage.correlation)]
    if not trust.stages:
        return ""
    if not found:
        return "There was no map to compare with, or none was left after the first step: this test says nothing."
    stage, last = found[-1]
    if last > _ALIKE:
        says = "The map hardly changes when the model forgets what it learned: it does not show what was learned."
    elif last < -_ALIKE:
        says = (
            "When the model forgets what it learned, the map becomes its opposite: the outline is the picture's own, "
            "which side of it is hot was learned."
        )
    elif abs(last) > _APART:
        says = "The map changes when the model forgets what it learned, but keeps some of its shape."
    else:
        says = "The map changes when the model forgets what it learned, as it should."
    when = (
        "At the end"
        if stage is trust.stages[-1]
        else f"Down to {stage.down_to or 'the model itself'}, where the last map was left,"
    )
    says += f" {when} the rank correlation is {last:.2f}; 0 is no likeness, 1 the same order, -1 the reverse."
    first = trust.stages[0].correlation
    if len(trust.stages) > 1 and first > 0.95:
        says += (
            f" Without {trust.stages[0].down_to} alone it is still {first:.2f}: the map depends little on which class "
            "is asked about."
        )
    return says


def margin(row: Row, measure: str) -> float:
    """How far from a row's number one is told apart from it: three standard deviations of several draws, never where
    all that a draw can have is 0 or 1."""
    if row.draws == 1:
        return 0.0
    return math.inf if measure in YES_OR_NO else DEVIATIONS * dict(row.spreads).get(measure, 0.0)


def _beaten(own: float, others: Sequence[float], higher: bool, margins: Sequence[float]) -> tuple[int, int]:
    """(how many it is better than, how many it is not told apart from)."""
    better = same = 0
    for other, least in zip(others, margins, strict=True):
        if round(own, _DIGITS) == round(other, _DIGITS) or not abs(own - other) > least:
            same += 1
        else:
            better += (own > other) == higher
    return better, same


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and not math.isnan(value)]
