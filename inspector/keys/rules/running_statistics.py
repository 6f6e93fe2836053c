"""Batch norms saved without their running statistics: mean 0 and variance 1, if the user takes them for want of others.

The network was trained with others, and answers otherwise until they are measured again. So it is lossy, and only
offered where the file has no statistics at all while the norms' own weights are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.placing.roles import split_name
from inspector.keys.placing.words import words_of
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule

# What else statistics are called: a standard deviation is the root of what is missing, and in the file.
_STATISTICS = frozenset({"mean", "variance", "std", "rstd", "invstd"})
_VALUES = {"running_mean": "statistics:0", "running_var": "statistics:1"}


def _steps(left: Leftovers) -> Iterator[Step]:
    missing = {place.name: place for place in left.missing if split_name(place.name)[1] in _VALUES}
    wanted = {t.name for t in left.target.tensors if split_name(t.name)[1] in _VALUES}
    there = {link.target.name for link in left.settled}
    if not missing or set(missing) != wanted or any(split_name(x.name)[1] in _VALUES for x in left.extra):
        return  # some are there: the file is a part, or another network's
    norms = {(split_name(name)[0], place.shape) for name, place in missing.items()}
    if any((split_name(x.name)[0], x.shape) in norms and _is_statistic(x.name) for x in left.extra):
        return  # a statistic of the same module under another name: bn.std
    weights = {t.name for t in left.target.tensors if split_name(t.name)[1] == "weight"}
    for name, place in missing.items():
        module, _ = split_name(name)
        weight = f"{module}.weight" if module else "weight"
        if not place.shape or len(place.shape) != 1 or (weight in weights and weight not in there):
            return
    for name, place in missing.items():
        yield Step(
            kind=StepKind.FILL,
            source=None,
            target=name,
            rule=RULE.id,
            reason="The file has no running statistics: as in a new layer, which is not what was trained.",
            cost=Cost.LOSSY,
            evidence=Evidence.CHOSEN,
            shape=place.shape,
            value=_VALUES[split_name(name)[1]],
        )


def _is_statistic(name: str) -> bool:
    return not _STATISTICS.isdisjoint(words_of(split_name(name)[1]))


RULE = Rule(
    id="running-statistics",
    title="No running statistics",
    says="Gives batch norms mean 0 and variance 1 where the file has no running statistics at all.",
    cost=Cost.LOSSY,
    done="running statistics start as in a new network",
    steps=_steps,
)
