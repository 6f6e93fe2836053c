"""Flax's collections in front of every name: params.Dense_0.kernel, batch_stats.BatchNorm_0.mean.

A Flax model keeps what is trained and what is counted in two trees of the same modules; torch keeps both in one module.
The collection's name is taken off, and a norm's mean and var are called as torch calls them. It speaks only where every
name begins with a collection and what is trained and what is counted never share a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

_COLLECTION = re.compile(r"(?P<collection>params|batch_stats)[./](?P<rest>.+)", re.DOTALL)
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
    says="Takes params and batch_stats off the names and calls a norm's mean and var running_mean and running_var.",
    cost=Cost.LOSSLESS,
    done="Flax's collections are taken off the names of {tensors}",
    spells=_spells,
)
