"""Paths for names: encoder/layer_0/dense/kernel, as Keras, Flax, Haiku and TensorFlow 1 write them.

Where no name has a dot, the slashes are all the separators that there are, and dots are put for them; TensorFlow's ":0"
goes with them. What the names mean is then as open as it was: another leaf or layout is for the rules about these.
Names that are the target's but for separators are read before, by `separators.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost
from inspector.keys.rules.entry import Move, Questions, Rule, Spelling

_OUTPUT = re.compile(r":0$")


def _spells(leaves: Sequence[Leaf], places: Sequence[Leaf], questions: Questions) -> Iterator[Spelling]:
    if any("." in leaf.name for leaf in leaves) or any("/" in place.name for place in places):
        return
    deep = sum("/" in leaf.name for leaf in leaves)
    # A lone slash may be a character of somebody's name.
    if 2 * deep < len(leaves):
        return
    names = [_OUTPUT.sub("", leaf.name).replace("/", ".") for leaf in leaves]
    if len(set(names)) < len(names) or not all(all(name.split(".")) for name in names):
        return
    move = Move(RULE.id, "write dots for the slashes of paths")
    for leaf, name in zip(leaves, names, strict=True):
        if leaf.name != name:
            yield Spelling(leaf, name, move)


RULE = Rule(
    id="path-names",
    title="Paths for names",
    says="Writes dots for slashes where no name of the file has a dot (Keras, Flax, Haiku, TensorFlow 1).",
    cost=Cost.LOSSLESS,
    done="the slashes in the names of {tensors} become dots",
    spells=_spells,
)
