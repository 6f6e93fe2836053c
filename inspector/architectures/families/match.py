"""Is this state dict one of a family's? Prefix, settings, and the evidence, tensor by tensor.

A family is looked at only when every one of its anchors occurs, under one prefix. The prefix that most anchors stand
under is taken off; what lies outside of it counts against the family.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from inspector.architectures.families.contradictions import believed
from inspector.architectures.families.entry import Family
from inspector.architectures.families.solve import expand, settings_of, solve_family, values_of
from inspector.architectures.families.specs import spec_of
from inspector.architectures.families.template import form_of
from inspector.architectures.types import Candidate
from inspector.architectures.wrappers import View, contract, taken_off
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.types import Shape
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.errors import UsageError

# Wider than the index's bar would let a trunk of a few shared names pass for a family whose sizes follow the file.
LEAST_COVERAGE = 0.5
LEAST_PRECISION = 0.6
LEAST_MATCHED = 5
# A template never has many times the tensors of the file that it was solved from; bounds hostile numbering.
MOST_TIMES = 4
# What config.json calls its network under.
NAMES = ("model_type", "architectures")


Stated = Mapping[str, tuple[str, str]]  # key -> (text, where it stands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A family with its settings and its evidence."""

    family: Family
    candidate: Candidate


def find_families(shapes: Mapping[str, Shape], families: Iterable[Family], stated: Stated | None = None) -> list[Found]:
    """The families that a state dict could be of, best first; only those worth naming.

    stated: what config.json or the file itself says; it settles what shapes do not.
    """
    inner = contract(shapes, _Everything()) if _wrapped(shapes) else {name: name for name in shapes}
    by_form: dict[str, list[str]] = {}
    for name, own in inner.items():
        by_form.setdefault(form_of(own), []).append(name)
    tails: dict[str, list[tuple[str, list[str]]]] = {}
    for form, names in by_form.items():
        tails.setdefault(form.rpartition(".")[2], []).append((form, names))
    found = []
    for family in families:
        one = _look(family, shapes, inner, tails, stated or {})
        if one is not None:
            found.append(one)
    said = [text.lower() for key, (text, _) in (stated or {}).items() if key in NAMES]

    def order(one: Found) -> tuple[object, ...]:
        named = any(f'"{word}"' in f'"{text}"' for word in one.family.stated for text in said)
        return -one.candidate.score, not named, len(one.candidate.wrapper)

    return _join_twins(sorted(found, key=order))


class _Everything(frozenset[str]):
    """Segments that are all known: only wrapper modules are taken out of the middle of names."""

    def __contains__(self, segment: object) -> bool:
        return segment not in WRAPPER_SEGMENTS


def _wrapped(shapes: Iterable[str]) -> bool:
    return any(not WRAPPER_SEGMENTS.isdisjoint(name.split(".")) for name in shapes)


def _look(
    family: Family,
    shapes: Mapping[str, Shape],
    inner: Mapping[str, str],
    tails: Mapping[str, list[tuple[str, list[str]]]],
    stated: Stated,
) -> Found | None:
    for bare in (False, True) if family.base else (False,):
        prefix = _prefix(family, inner, tails, bare)
        if prefix is None:
            continue
        inside = {own.removeprefix(prefix): name for name, own in inner.items() if own.startswith(prefix)}
        taken = Counter(taken_off(name, own) for own, name in inside.items())
        view = View(
            shapes={own: shapes[name] for own, name in inside.items()},
            outside=tuple(name for name, own in inner.items() if not own.startswith(prefix)),
            wrapper=max(taken, key=lambda text: (taken[text], text), default=""),
            weighty=sum(not is_bookkeeping(name) for name in shapes),
        )
        candidate = compare_family(family, view, bare=bare, stated=stated)
        if candidate is not None:
            return Found(family=family, candidate=candidate)
    return None


def _prefix(
    family: Family, inner: Mapping[str, str], tails: Mapping[str, list[tuple[str, list[str]]]], bare: bool
) -> str | None:
    """The prefix under which every anchor occurs, None when there is none; the shortest among equals.

    tails: last segment -> (form, names of that form): thousands of equal blocks have few forms.
    """
    votes: list[Counter[str]] = []
    for anchor in family.anchors:
        base = "" if bare else family.base
        form, literal, count = _anchor(base + anchor[1:] if anchor.startswith("@") else anchor)
        counted: Counter[str] = Counter()
        for own, names in tails.get(form.rpartition(".")[2], ()):
            if own != form and not own.endswith(f".{form}"):
                continue
            for name in names:
                segments = inner[name].split(".")
                if literal.fullmatch(".".join(segments[-count:])):
                    counted["".join(f"{segment}." for segment in segments[:-count])] += 1
        if not counted:
            return None
        votes.append(counted)
    shared = set(votes[0]).intersection(*votes[1:])
    return min(shared, key=lambda prefix: (-votes[0][prefix], len(prefix), prefix), default=None)


@lru_cache(maxsize=1024)
def _anchor(anchor: str) -> tuple[str, re.Pattern[str], int]:
    """(its form, what its names look like, how many segments)."""
    pieces = re.split(r"\{[^}]*\}", anchor)
    return form_of("0".join(pieces)), re.compile(r"\d+".join(map(re.escape, pieces))), anchor.count(".") + 1


def compare_family(family: Family, view: View, *, bare: bool = False, stated: Stated | None = None) -> Candidate | None:
    """The evidence for a family against a view of a file, None when it is not worth naming. `twins` is left empty."""
    settings = settings_of(family, solve_family(family, view.shapes, bare=bare), bare=bare)
    try:
        values = values_of(family, settings, bare=bare)
    except UsageError:
        return None
    most = MOST_TIMES * len(view.shapes) + 100
    expected = [one.tensor for one in islice(expand(family, values, bare=bare), most + 1)]
    if len(expected) > most:
        return None
    matched, missing, reshaped = [], [], []
    for tensor in expected:
        own = view.shapes.get(tensor.name)
        if own is None:
            missing.append(tensor.name)
        elif own == tensor.shape:
            matched.append(tensor.name)
        else:
            reshaped.append((tensor.name, own, tensor.shape or ()))
    names = {tensor.name for tensor in expected}
    extra = (*(name for name in view.shapes if name not in names), *view.outside)
    fitting, wanted, left = _weighty(matched), _weighty(names), _weighty(extra)
    present = fitting + left + _weighty(name for name, _, _ in reshaped)
    if fitting < LEAST_MATCHED or fitting < LEAST_COVERAGE * wanted or fitting < LEAST_PRECISION * present:
        return None
    spec, confirmed = spec_of(family, settings, believed(settings, stated or {}))
    return Candidate(
        spec=spec,
        twins=(),
        matched=tuple(matched),
        missing=tuple(missing),
        extra=extra,
        reshaped=tuple(reshaped),
        wrapper=view.wrapper,
        score=fitting / max(1, wanted + left),
        exact=fitting == wanted and not left and not reshaped,
        says="",
        confirmed=confirmed,
    )


def _join_twins(found: list[Found]) -> list[Found]:
    """Families with the same names and shapes become one candidate with twins, the first by rank in front."""
    joined: list[Found] = []
    for one in found:
        fits = (frozenset(one.candidate.matched), one.candidate.missing, one.candidate.reshaped)
        for i, other in enumerate(joined):
            if fits == (frozenset(other.candidate.matched), other.candidate.missing, other.candidate.reshaped):
                twins = (*other.candidate.twins, one.family.label)
                joined[i] = replace(other, candidate=replace(other.candidate, twins=twins))
                break
        else:
            joined.append(one)
    return joined


def _weighty(names: Iterable[str]) -> int:
    return sum(not is_bookkeeping(name) for name in names)
