"""gamma and beta where the target's norm layer says weight and bias.

Names of TensorFlow's normalisation layers, carried over by converters. A layer scale is called gamma rightly, so this
fires only on a pair of vectors of one length, in a target module that has weight and bias and neither gamma nor beta.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Link, Move, Pair, Phrase, Rule, substitution

_ALIASES = (("gamma", "weight"), ("beta", "bias"))


def _links(pair: Pair) -> Iterator[Link]:
    ours, theirs = pair.source.leaves, pair.target.leaves
    taken = pair.whole_target.leaves
    if any(old in taken for old, _ in _ALIASES):
        return
    if not all(old in ours and new in theirs for old, new in _ALIASES):
        return
    shapes = {ours[old].shape for old, _ in _ALIASES} | {
        theirs[new].shape or ours["gamma"].shape for _, new in _ALIASES
    }
    if len(shapes) != 1 or len(ours["gamma"].shape or ()) != 1:
        return
    for old, new in _ALIASES:
        move = Move(RULE.id, f'call "{old}" of norm layers "{new}"', (("old", old), ("new", new)))
        yield Link(ours[old], theirs[new], (move,))


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    pattern, put = rf"\.{parameters['old']}$", f".{parameters['new']}"
    return (substitution(pattern, put),)


RULE = Rule(
    id="norm-aliases",
    title="gamma and beta",
    says="Calls gamma and beta weight and bias where the target module is a norm layer without those names.",
    cost=Cost.LOSSLESS,
    done="gamma and beta of norm layers are called weight and bias",
    leaf_links=_links,
    phrases=_phrases,
)
