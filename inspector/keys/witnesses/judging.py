"""From a score per layer and option to what is said: a winner that is none by chance, or nothing.

A score is Fisher's z of a rank correlation, or any other number that is normal about 0 where the option is as wrong as
any, with a known deviation. Five of them, by chance, take three million tries.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspector.keys.witnesses.types import Bearing

#: Standard deviations of the winner's sum over the layers above none, and above each other option's.
ABOVE_NONE, ABOVE_OTHERS = 5.0, 4.0
#: In this share of the layers the winner has to be the best.
AGREEING = 0.75
#: An option that has less than this share of the winner's score is spoken against. One that has more may be the same
#: thing in part (heads of half the size), and leaves it open.
NEAR = 0.7


@dataclass(frozen=True, slots=True)
class Verdict:
    """winners: the options of the best group. best, next_best: mean scores. agree: layers in which it was best."""

    winners: frozenset[str]
    best: float
    next_best: float
    agree: int
    layers: int


def judge(scores: Sequence[Mapping[str, float]], deviations: Sequence[float]) -> Verdict | None:
    """scores: of each layer, by option (the same options in all). deviations: of a score of that layer.

    Options whose scores are equal everywhere are one group: what they differ in, this does not see. None where no
    group wins.
    """
    if not scores:
        return None
    groups: dict[tuple[float, ...], list[str]] = {}
    for option in scores[0]:
        groups.setdefault(tuple(round(layer[option], 9) for layer in scores), []).append(option)
    if len(groups) < 2:
        return None
    weights = [1 / deviation**2 for deviation in deviations]
    total = sum(weights)

    def mean(values: Sequence[float]) -> float:
        return sum(w * v for w, v in zip(weights, values, strict=True)) / total

    order = sorted(groups, key=mean, reverse=True)
    best, rival = order[0], order[1]
    spread = 1 / math.sqrt(total)
    agree = sum(all(best[i] > other[i] for other in order[1:]) for i in range(len(scores)))
    sure = (
        mean(best) >= ABOVE_NONE * spread
        and mean(best) - mean(rival) >= ABOVE_OTHERS * math.sqrt(2) * spread
        and mean(rival) <= NEAR * mean(best)
        and agree >= AGREEING * len(scores)
    )
    if not sure:
        return None
    return Verdict(frozenset(groups[best]), mean(best), mean(rival), agree, len(scores))


def bearings(
    options: Iterable[str], winners: Collection[str], asked: Collection[str]
) -> tuple[tuple[str, Bearing], ...]:
    """asked: the options that took part; of the others nothing is said."""
    return tuple(
        (option, Bearing.NOTHING if option not in asked else Bearing.FOR if option in winners else Bearing.AGAINST)
        for option in options
    )
