"""Names that differ from the target's by capital letters alone, as words are parted by them or not: Fc1.Weight,
FC1.WEIGHT, attentionRnn.biasIh (variables of other languages, names that went through a title or an upper case).

Only where each name of the file reads as at most one of the target and no two as the same: K and k may be two tensors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

# Fewer names agree by chance.
_FEWEST = 3
_HUMP = re.compile(r"[a-z0-9][A-Z]")


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    there = {place.name for place in places}
    other = [leaf for leaf in leaves if leaf.name not in there]
    if not other:
        return
    found: dict[str, str] = {}
    if len(other) == len(leaves):
        found = _alike(leaves, places, str.lower)
    if not found and any(_HUMP.search(leaf.name) for leaf in other):
        found = _alike(leaves, places, lambda name: name.lower().replace("_", ""))
    changed = [leaf for leaf in leaves if found.get(leaf.name, leaf.name) != leaf.name]
    if len(changed) < _FEWEST:
        return
    move = Move(RULE.id, "write capital letters as the target does")
    for leaf in changed:
        yield Spelling(leaf, found[leaf.name], move)


def _alike(leaves: Sequence[Leaf], places: Sequence[Leaf], plain: Callable[[str], str]) -> dict[str, str]:
    """The target's names by the file's, empty where two of a side read alike or most of the file's as none."""
    theirs = {plain(place.name): place.name for place in places}
    ours = Counter(plain(leaf.name) for leaf in leaves)
    if len(theirs) < len(places) or len(ours) < len(leaves):
        return {}
    found = {leaf.name: there for leaf in leaves if (there := theirs.get(plain(leaf.name))) is not None}
    return found if 2 * len(found) > len(leaves) else {}


RULE = Rule(
    id="letter-case",
    title="Other capital letters",
    says=(
        "Reads names that differ from the target's by capital letters alone (Fc1.Weight, FC1.WEIGHT), or part words by "
        "them (attentionRnn.biasIh for attention_rnn.bias_ih)."
    ),
    cost=Cost.LOSSLESS,
    done="capital letters of {tensors} are written as the target does",
    spells=_spells,
)
