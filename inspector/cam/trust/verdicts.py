"""What the numbers mean, in words, for people who see one map: page and terminal say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspector.cam.trust.assess import CENTRE, EDGES, RANDOM, Trust
from inspector.cam.trust.measures import MEASURES

# What the maps that know nothing are called.
NAMES = {RANDOM: "noise", CENTRE: "a blob in the middle", EDGES: "the edges of the picture"}
# Rank correlations: above, a map is hardly another one; below, it has little left in common.
_ALIKE, _APART = 0.5, 0.3
# Of a map's own size.
_STEADY, _SHAKY = 0.1, 0.5
# Numbers that look the same in the table are the same.
_DIGITS = 3


def standing(values: Sequence[float | None], higher: bool | None) -> str:
    """Where the first value stands among the others. higher: whether more is better, None for neither."""
    own, others = values[0], _numbers(values[1:])
    if own is None:
        return ""
    if math.isnan(own):
        return "no number for this map"
    side = {True: "higher is better", False: "lower is better", None: "neither is better"}[higher]
    if higher is None or not others:
        return side
    better, same = _beaten(own, others, higher)
    if better == len(others):
        says = f"better than all {len(others)}" if better > 1 else "better"
    elif same == len(others):
        says = "the same for all"
    elif not better and not same:
        says = f"worse than all {len(others)}" if len(others) > 1 else "worse"
    else:
        says = f"better than {better} of {len(others)}" + (f", equal to {same}" if same else "")
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


def summary(trust: Trust) -> str:
    """What all measures together say of the map beside each that knows nothing, and what a bad outcome means."""
    columns = [dict(row.values) for row in trust.rows]
    sides = {measure.id: measure.higher for measure in MEASURES if measure.higher is not None}
    sides |= {"energy": True, "pointing": True}
    own = {name: columns[0][name] for name in sides if name in columns[0]}
    counts: list[tuple[str, int, int]] = []  # of, measures by which the map is better, measures that tell them apart
    for row, column in zip(trust.rows[1:], columns[1:], strict=True):
        found = [
            _beaten(value, [column[name]], sides[name])
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
    if weak - {CENTRE}:
        says += (
            " A map that does no better than one that knows nothing does not show what the answer rests on: try the "
            "suggested layer, another method or another picture before you rely on it."
        )
    elif weak:
        says += (
            " Where the thing stands in the middle, a blob there is hard to beat: a picture where it does not tells "
            "more."
        )
    return says


def forgetting(trust: Trust) -> str:
    """What the randomisation test says; "" without it."""
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


def _beaten(own: float, others: Sequence[float], higher: bool) -> tuple[int, int]:
    """(how many it is better than, how many it equals)."""
    shown, rest = round(own, _DIGITS), [round(other, _DIGITS) for other in others]
    better = sum(shown > other if higher else shown < other for other in rest)
    return better, sum(shown == other for other in rest)


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and not math.isnan(value)]
