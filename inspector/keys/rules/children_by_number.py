"""Modules by their number on one side and by name on the other: 4.0.conv1 for layer1.0.conv1.

`nn.Sequential(*list(net.children()))` numbers a network's modules in the order in which it defines them, those without
tensors too. What is inside keeps its names. A number is a name's where no other module of either side holds the same
tensors under the same names, most of all tensors have names inside that agree, and the order is that of the definition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from inspector.keys.placing.tree import Node
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Move, Pair, Phrase, Route, Rule, substitution

# Of two, nothing may be left over.
_FEWEST = 2


def _pairs(numbers: Node, names: Node) -> dict[str, str]:
    """{number: name}, empty where it is not all of the numbers or not sure."""
    by_number = numbers.children
    if len(by_number) < _FEWEST or numbers.leaves or not all(s.isdecimal() for s in by_number):
        return {}
    if any(segment[0].isdecimal() for segment in names.children):
        return {}
    ours = Counter(child.signature for child in by_number.values())
    theirs: dict[int, list[str]] = {}
    for segment, child in names.children.items():
        theirs.setdefault(child.signature, []).append(segment)
    found = {}
    for segment in sorted(by_number, key=int):
        fitting = theirs.get(by_number[segment].signature, [])
        if len(fitting) != 1 or ours[by_number[segment].signature] != 1:
            return {}
        found[segment] = fitting[0]
    inside = sum(by_number[segment].size for segment in found if by_number[segment].children)
    defined = [segment for segment in names.children if segment in found.values()]
    # What is only by itself tells nothing by names; and an alphabet's order is no definition's.
    if 2 * inside <= numbers.size or (names.in_order and defined != list(found.values())):
        return {}
    if len(found) == _FEWEST and (names.leaves or len(names.children) > _FEWEST):
        return {}
    return found


def _routes(pair: Pair) -> Iterator[Route]:
    found = _pairs(pair.source, pair.target) or _turned(_pairs(pair.target, pair.source))
    for ours, theirs in found.items():
        move = Move(RULE.id, f'call "{ours}" "{theirs}"', (("old", ours), ("new", theirs)), proved=True)
        yield Route(pair.source.children[ours], pair.target.children[theirs], (move,), takes=(ours,), fills=(theirs,))


def _turned(found: Mapping[str, str]) -> dict[str, str]:
    return {theirs: ours for ours, theirs in found.items()}


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    return (substitution(rf"(^|\.){re.escape(parameters['old'])}\.", rf"\g<1>{parameters['new']}."),)


RULE = Rule(
    id="children-by-number",
    title="Modules by number",
    says=(
        "Gives the numbers of nn.Sequential(*net.children()) their names, or takes them, where each module's contents "
        "say which it is."
    ),
    cost=Cost.LOSSLESS,
    done="modules that have numbers on one side and names on the other are matched by what they hold",
    routes=_routes,
    phrases=_phrases,
)
