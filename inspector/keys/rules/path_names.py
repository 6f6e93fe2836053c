"""Paths for names, as TensorFlow, Keras 2, Flax and Haiku write them: layer1_0/conv1/kernel:0, net/~/conv1/w.

Slashes part the modules, a variable's name ends with :0, and Haiku puts a ~ between what is made in a constructor. They
read as dots; a number that is written onto its list's name (layer1_0) is a level of its own where the target has that
list. Where the target's names without separators are the file's, `separators.py` has said so with more certainty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from inspector.checkpoint.level_words import NO_WRAPPERS, is_about_weights, words_in
from inspector.keys.placing.hidden_words import dotted
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

_NUMBERED = re.compile(r"(.*?[A-Za-z0-9])((?:_(?:0|[1-9][0-9]{0,3}))+)")
_VARIABLE = re.compile(r":[0-9]+$")


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    names = [leaf.name for leaf in leaves]
    # What a model has of its own (cls_token:0) has no module, and so no slash.
    if any("." in name for name in names) or 2 * sum("/" in name for name in names) <= len(names):
        return
    if any("/" in place.name for place in places):
        return
    lists = _lists(places)
    made = [_levels(name, lists) for name in dotted([_plain(name) for name in names])]
    scope = _scope(made, places)
    made = [name[len(scope) :] for name in made]
    if len(set(made)) < len(made) or not all(all(name.split(".")) for name in made):
        return
    says = "write dots for the slashes of paths" + (f', without "{scope}" before all of them' if scope else "")
    move = Move(RULE.id, says)
    for leaf, name in zip(leaves, made, strict=True):
        if name != leaf.name:
            yield Spelling(leaf, name, move)


def _plain(name: str) -> str:
    return name.replace("/~/", "/") if "/" in name else _VARIABLE.sub("", name)


def _scope(names: Sequence[str], places: Sequence[Leaf]) -> str:
    """The one scope that a variable's name begins with and the target has not, "" where its modules do not say so.

    A rule about trees compares what lies in a module, and kernels lie otherwise here: modules are compared by name.
    """
    first = f"{names[0].partition('.')[0]}." if names else ""
    said = NO_WRAPPERS.intersection(words_in(first))
    if said or is_about_weights(first[:-1]) or not all(name.startswith(first) for name in names):
        return ""
    there = {_module(place.name) for place in places}
    whole, inside = (sum(_module(name[n:]) in there for name in names) for n in (0, len(first)))
    return first if 5 * inside >= 4 * len(names) and inside > whole else ""


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _lists(places: Sequence[Leaf]) -> frozenset[str]:
    """Names of the target's modules whose children are numbered, and no name of it that ends in a number."""
    found: set[str] = set()
    own: set[str] = set()
    for place in places:
        segments = place.name.split(".")
        own.update(segments)
        found.update(one for one, below in pairwise(segments) if below.isdecimal())
    return frozenset(found - {match[1] for match in map(_NUMBERED.fullmatch, own) if match})


def _levels(name: str, lists: frozenset[str]) -> str:
    segments = []
    for segment in name.split("."):
        found = _NUMBERED.fullmatch(segment)
        segments.append(found[1] + found[2].replace("_", ".") if found and found[1] in lists else segment)
    return ".".join(segments)


RULE = Rule(
    id="path-names",
    title="Paths for names",
    says=(
        "Reads slashes as dots where names have them throughout (TensorFlow, Keras, Flax, Haiku), without :0, ~ and "
        "one scope before all names, and a number written onto a list's name (layer1_0) as a level of its own."
    ),
    cost=Cost.LOSSLESS,
    done="the slashes in the names of {tensors} become dots",
    spells=_spells,
)
