"""Families beside the index: when a family's answer stands in front of an architecture that is known exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from inspector.architectures.families import FAMILIES
from inspector.architectures.families.assume import assumed_clause
from inspector.architectures.families.contradictions import SIZES
from inspector.architectures.families.match import NAMES, Found, Stated, find_families
from inspector.architectures.families.specs import words_for
from inspector.architectures.match import evidence_of, is_worth_naming, precision
from inspector.architectures.once import once_per_network
from inspector.architectures.types import Candidate
from inspector.checkpoint.types import Shape

# Of a file that is known nearly whole, the index says what it is: the rest is damage, not another size.
KNOWN = 0.9


def with_families(ranked: Sequence[Candidate], shapes: Mapping[str, Shape], stated: Stated) -> list[Candidate]:
    """The index's candidates and the families' together, best first. Nothing is asked beside an exact match.

    ranked: the index's, best first. shapes: of the whole file. stated: see `claims.stated_settings`.
    """
    best = next((candidate for candidate in ranked if is_worth_naming(candidate)), None)
    if best is not None and best.exact:
        return list(ranked)
    found = _find(shapes, tuple((key, stated[key]) for key in stated if key in _keys()))
    if not found:
        return list(ranked)
    first = found[0]
    if best is None or first.exact or (first.score > best.score and precision(best) < KNOWN):
        return [*found, *ranked]
    if precision(best) >= KNOWN:
        return list(ranked)
    return sorted([*ranked, *found], key=lambda candidate: -candidate.score)


def _found(shapes: Mapping[str, Shape], stated: tuple[tuple[str, tuple[str, str]], ...]) -> list[Candidate]:
    return [_in_words(one) for one in find_families(shapes, FAMILIES, dict(stated))]


_find = once_per_network(_found)


@lru_cache(maxsize=1)
def _keys() -> frozenset[str]:
    """What any family looks at of what is stated. A training's own ("epoch") is another in every file."""
    return frozenset((*NAMES, *SIZES, *(key for family in FAMILIES for one in family.assumes for key in one.stated)))


def _in_words(one: Found) -> Candidate:
    candidate = one.candidate
    # Several families of one library are told apart by their names, those of two by both: see `computing_twins`.
    text = evidence_of(candidate, words_for(one.family, candidate.spec), is_trunk=False)
    text += "".join(f" {note}." for note in one.family.notes)
    if candidate.confirmed:
        said = ", ".join(f"{one.name} = {one.value} ({one.why})" for one in candidate.confirmed)
        text += f" Stated beside the shapes: {said}."
    if candidate.spec.assumed:
        clause = assumed_clause(candidate.spec.assumed)
        text += f" Assumed, because no shape tells: {clause}. Confirm by writing it into the target."
    return replace(candidate, says=text)
