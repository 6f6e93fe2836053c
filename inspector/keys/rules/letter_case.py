"""Names that differ from the target's by capital letters alone: Fc1.Weight, FC1.WEIGHT (variables of other languages,
names that went through a title or an upper case).

Only where each name of the file reads as at most one of the target and no two as the same: K and k may be two tensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

# Fewer names agree by chance.
_FEWEST = 3


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    there = {place.name: place for place in places}
    if any(leaf.name in there for leaf in leaves):
        return
    small = {place.name.lower(): place.name for place in places}
    ours = Counter(leaf.name.lower() for leaf in leaves)
    if len(small) < len(places) or len(ours) < len(leaves):
        return
    found = [leaf for leaf in leaves if leaf.name.lower() in small]
    if len(found) < _FEWEST or 2 * len(found) <= len(leaves):
        return
    move = Move(RULE.id, "write capital letters as the target does")
    for leaf in found:
        yield Spelling(leaf, small[leaf.name.lower()], move)


RULE = Rule(
    id="letter-case",
    title="Other capital letters",
    says="Reads names that differ from the target's by capital letters alone (Fc1.Weight, FC1.WEIGHT).",
    cost=Cost.LOSSLESS,
    done="capital letters of {tensors} are written as the target does",
    spells=_spells,
)
