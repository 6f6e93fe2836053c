"""Flax's collections in front of every name: params.Dense_0.kernel, batch_stats.BatchNorm_0.mean.

A Flax model keeps what is trained and what is counted in two trees of the same modules; torch keeps both in one module.
The collection's name is taken off, and a norm's mean and var are called as torch calls them. It speaks only where every
name begins with a collection and what is trained and what is counted never share a name. A module of a list is called
by the list once more there (layer.layer_0); where the target has it by its number alone, so it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

_COLLECTION = re.compile(r"(?P<collection>params|batch_stats)[./](?P<rest>.+)", re.DOTALL)
_LISTED = re.compile(r"(?<![^.])(?P<list>[A-Za-z][A-Za-z0-9]*)\.(?P=list)_(?P<number>[0-9]+)(?=\.)")
_STATISTICS = {"mean": "running_mean", "var": "running_var"}


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    if any(_COLLECTION.fullmatch(place.name) for place in places):
        return
    made: list[tuple[Leaf, str]] = []
    for leaf in leaves:
        name = _plain(leaf.name)
        if not name:
            return
        made.append((leaf, name))
    numbered = {
        pair
        for place in places
        for pair in pairwise(place.name.split("."))
        if pair[1].isdecimal() and pair[1].isascii()
    }
    segments = {segment for place in places for segment in place.name.split(".")}

    def listed(found: re.Match[str]) -> str:
        whole, number = f"{found['list']}_{found['number']}", found["number"]
        alone = (found["list"], number) in numbered and whole not in segments
        return f"{found['list']}.{number}" if alone else found[0]

    made = [(leaf, _LISTED.sub(listed, name)) for leaf, name in made]
    if len({name for _, name in made}) < len(made) or not any(_is_flax(leaf.name) for leaf in leaves):
        return
    move = Move(RULE.id, "take Flax's collections off the names")
    for leaf, name in made:
        yield Spelling(leaf, name, move)


def _is_flax(name: str) -> bool:
    return name.startswith("batch_stats") or re.search(r"[./](kernel|embedding|scale)$", name) is not None


def _plain(name: str) -> str:
    """Without its collection, "" for a name that has none."""
    found = _COLLECTION.fullmatch(name)
    if found is None:
        return ""
    *modules, leaf = re.split(r"[./]", found["rest"])
    if found["collection"] == "batch_stats":
        leaf = _STATISTICS.get(leaf, leaf)
    return ".".join((*modules, leaf))


RULE = Rule(
    id="flax-collections",
    title="Flax's collections",
    says=(
        "Takes params and batch_stats off the names and calls a norm's mean and var running_mean and running_var; "
        "layer.layer_0 is layer.0 where the target has no other."
    ),
    cost=Cost.LOSSLESS,
    done="Flax's collections are taken off the names of {tensors}",
    spells=_spells,
)
