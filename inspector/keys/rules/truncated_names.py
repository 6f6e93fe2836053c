"""Names whose beginning was cut off by length: ings.word_embeddings.weight for embeddings.word_embeddings.weight.

A loader that removes a prefix of fixed length from names that do not have it (or have another) leaves every name short
by the same number of characters. So one number must explain all names of the file, and each must be the end of exactly
one name of the target; where it ends two, the user is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inspector.checkpoint.bookkeeping import BOOKKEEPING
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Ambiguity, Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

_FEWEST = 3
_MOST_CUT = 64  # characters


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    ours = [leaf for leaf in leaves if not leaf.name.endswith(tuple(BOOKKEEPING))]
    if len(ours) < _FEWEST:
        return
    longest = max(ours, key=lambda leaf: len(leaf.name))
    cuts = {len(p.name) - len(longest.name) for p in places if p.name.endswith(longest.name)}
    # More than one number that explains all names is no explanation.
    found = [(cut, ends) for cut in sorted(cuts) if 0 < cut <= _MOST_CUT and (ends := _ends(places, cut, ours))]
    if len(found) != 1:
        return
    cut, ends = found[0]
    move = Move(RULE.id, f"put back the {cut} characters that were cut off every name", change=(cut,))
    for leaf in leaves:
        options = [p.name for p in ends.get(leaf.name, ()) if p.shape in (None, leaf.shape) or leaf.shape is None]
        name = options[0] if len(options) == 1 else _ask(leaf, options, questions) if options else None
        if name is not None:
            yield Spelling(leaf, name, move)


def _ends(places: Sequence[Leaf], cut: int, ours: Sequence[Leaf]) -> Mapping[str, list[Leaf]]:
    """The target's names by what is left of them after the cut; {} where that is not what these names are."""
    ends: dict[str, list[Leaf]] = {}
    # A cut between two levels is a prefix that is missing, which `wrapper_segment` puts back; one after a digit-only
    # rest may be a Sequential's own number.
    torn = 0
    for place in places:
        if len(place.name) > cut:
            ends.setdefault(place.name[cut:], []).append(place)
    for leaf in ours:
        fitting = [p for p in ends.get(leaf.name, ()) if p.shape in (None, leaf.shape) or leaf.shape is None]
        if not fitting:
            return {}
        first = leaf.name.partition(".")[0]
        torn += fitting[0].name[cut - 1] != "." and not first.isdigit()
    weights = [place for place in places if not place.name.endswith(tuple(BOOKKEEPING))]
    return ends if 2 * torn > len(ours) and 2 * len(ours) >= len(weights) else {}


def _ask(leaf: Leaf, options: Sequence[str], questions: Questions) -> str | None:
    return questions.ask(
        Ambiguity(
            id=RULE.id,
            question=f"{leaf.name}, whose beginning is cut off, is the end of {' and of '.join(options)}. Which one?",
            options=tuple((name, f"it is {name}") for name in options),
        ),
        place=leaf.name,
    )


RULE = Rule(
    id="truncated-names",
    title="Names cut off by length",
    says="Puts back the beginning of names from which a prefix of fixed length was cut too much.",
    cost=Cost.LOSSLESS,
    done="the beginning that was cut off {tensors} is put back",
    spells=_spells,
)
