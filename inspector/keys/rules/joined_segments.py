"""norm.1 where the target says norm1, and the other way round.

DenseNets saved before torch 0.4 have denselayer1.norm.1.weight; module names with dots were then forbidden and the
layers renamed. Fires where one side lacks the joined name and the other the split one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.keys.placing.tree import Path
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Move, Pair, Phrase, Route, Rule, substitution


def _routes(pair: Pair) -> Iterator[Route]:
    ours, theirs = pair.source.children, pair.target.children
    for stem, child in ours.items():
        if stem in theirs or child.leaves or not child.children:
            continue
        joined = [stem + number for number in child.children]
        # All of them or none: one hit by chance is no evidence.
        if all(n.isdigit() for n in child.children) and all(name in theirs and name not in ours for name in joined):
            for (_, below), name in zip(child.children.items(), joined, strict=True):
                move = Move(RULE.id, f'join "{stem}.N" to "{stem}N"', (("stem", stem), ("way", "join")))
                yield Route(below, theirs[name], (move,), takes=(stem,), fills=(name,))
    for stem, place in theirs.items():
        if stem in ours or place.leaves or not place.children or not all(n.isdigit() for n in place.children):
            continue
        joined = [stem + number for number in place.children]
        if all(name in ours and name not in theirs for name in joined):
            for (_, below), name in zip(place.children.items(), joined, strict=True):
                move = Move(RULE.id, f'split "{stem}N" into "{stem}.N"', (("stem", stem), ("way", "split")))
                yield Route(ours[name], below, (move,), takes=(name,), fills=(stem,))


def _joined(path: Path) -> Path:
    return tuple(re.sub(r"\.([0-9]+)(?=\.|$)", r"\1", ".".join(path)).split("."))


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    stem = re.escape(parameters["stem"])
    if parameters["way"] == "join":
        pattern, put = rf"(^|\.)({stem})\.(\d+)\.", r"\1\2\3."
    else:
        pattern, put = rf"(^|\.)({stem})(\d+)\.", r"\1\2.\3."
    return (substitution(pattern, put),)


RULE = Rule(
    id="joined-segments",
    title="Joined names",
    says="Joins norm.1 to norm1 (DenseNets of torch 0.3), or splits it, where all numbers of the name do so.",
    cost=Cost.LOSSLESS,
    done='names like "{stem}" and a number are {verb}',
    routes=_routes,
    names_suffice=True,
    plain=_joined,
    phrases=_phrases,
)
