"""What the numbers mean, in words, for people who see one map: page and terminal say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspector.cam.trust.assess import Trust
from inspector.cam.trust.measures import MEASURES

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
    """What all measures together say, and what a bad outcome means."""
    columns = [dict(row.values) for row in trust.rows]
    counted: list[tuple[str, bool]] = []
    empty = 0
    titles = {measure.id: (measure.title, measure.higher) for measure in MEASURES if measure.higher is not None}
    titles |= {"energy": ("Energy in the mask", True), "pointing": ("Pointing game", True)}
    for name, (title, higher) in titles.items():
        own, others = columns[0].get(name), _numbers([column.get(name) for column in columns[1:]])
        if own is None:
            continue
        if math.isnan(own):
            empty += 1
        elif others and len({round(v, _DIGITS) for v in (own, *others)}) > 1:
            counted.append((title, _beaten(own, others, bool(higher))[0] == len(others)))
    if not counted:
        return (
            "The map is the same everywhere or empty, so there is nothing to measure. Try another layer or method."
            if empty
            else "No measure tells the maps apart."
        )
    won = [title for title, better in counted if better]
    lost = [title for title, better in counted if not better]
    if not lost:
        return (
            f"By {_all_of(len(won))} this map says more about the answer than noise, a blob in the middle or the edges "
            "of the picture."
        )
    if not won:
        return (
            "No measure finds this map better than all three that know nothing: it does not show what the answer rests "
            "on. Try the suggested layer, another method or another picture before you rely on it."
        )
    return (
        f"By {len(won)} of {len(counted)} measures this map is better than noise, a blob in the middle and the edges "
        f"of the picture. Not by {_listed(lost)}: there, a map that knows nothing does as well or better."
    )


def forgetting(trust: Trust) -> str:
    """What the randomisation test says; "" without it."""
    found = [(stage, stage.correlation) for stage in trust.stages if not math.isnan(stage.correlation)]
    if not trust.stages:
        return ""
    if not found:
        return "There was no map to compare with, or none was left after the first step: this test says nothing."
    stage, last = found[-1]
    says = {
        True: "The map hardly changes when the model forgets what it learned: it shows the picture or the "
        "architecture, not what was learned.",
        False: "The map changes when the model forgets what it learned, as it should.",
        None: "The map changes when the model forgets what it learned, but keeps some of its shape.",
    }[True if abs(last) > _ALIKE else False if abs(last) <= _APART else None]
    when = (
        "At the end"
        if stage is trust.stages[-1]
        else f"Down to {stage.down_to or 'the model itself'}, where the last map was left,"
    )
    says += f" {when} the rank correlation is {last:.2f}; 0 is no likeness, 1 the same order."
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


def _all_of(count: int) -> str:
    return "the one measure" if count == 1 else "both measures" if count == 2 else f"all {count} measures"


def _listed(titles: Sequence[str]) -> str:
    few = [title if title == "ROAD" else title[0].lower() + title[1:] for title in titles]
    return few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
