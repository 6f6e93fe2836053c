"""kernel, w or weights where the target's linear or convolution says weight, embedding where its embedding does: names
of Keras, Flax, MindSpore, TF-slim and GPT-2's first release.

Fires only in a module that has exactly that one name for its matrix on either side. Such files are usually stored the
other way round as well, which is another rule's matter: here the number of elements must agree, and no more. A
table of rows lies one way in every library: its shape must be the target's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Link, Move, Pair, Phrase, Rule, substitution

_TABLES = ("embedding", "embeddings", "embedding_table")
_NAMES = ("kernel", "w", "W", "weights", *_TABLES)
_BIASES = ("b", "biases")


def _links(pair: Pair) -> Iterator[Link]:
    ours, theirs = pair.source.leaves, pair.target.leaves
    place = theirs.get("weight")
    found = [name for name in _NAMES if name in ours]
    if place is None or len(found) != 1 or "weight" in pair.whole_source.leaves:
        return
    old = found[0]
    if old in pair.whole_target.leaves or not _is_matrix(ours[old], place):
        return
    if old in _TABLES and ours[old].shape != place.shape:
        return
    yield Link(ours[old], place, (_move(old, "weight"),))
    for short in _BIASES:
        bias = theirs.get("bias")
        if bias is None or short not in ours or short in pair.whole_target.leaves:
            continue
        if bias.shape in (None, ours[short].shape) and "bias" not in pair.whole_source.leaves:
            yield Link(ours[short], bias, (_move(short, "bias"),))


def _is_matrix(ours: Leaf, theirs: Leaf) -> bool:
    if ours.shape is None or theirs.shape is None:
        return False
    return min(len(ours.shape), len(theirs.shape)) >= 2 and math.prod(ours.shape) == math.prod(theirs.shape)


def _move(old: str, new: str) -> Move:
    of = "embeddings" if old in _TABLES else "linear layers and convolutions"
    return Move(RULE.id, f'call "{old}" of {of} "{new}"', (("old", old), ("new", new)))


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    return (substitution(rf"\.{parameters['old']}$", f".{parameters['new']}"),)


RULE = Rule(
    id="matrix-aliases",
    title="kernel",
    says=(
        "Calls kernel (w, W) weight, and b bias, where the target's module has a matrix of as many elements; and "
        "embedding weight, where it has one of the same shape."
    ),
    cost=Cost.LOSSLESS,
    done="kernels and embeddings are called weights",
    leaf_links=_links,
    phrases=_phrases,
)
