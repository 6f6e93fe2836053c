"""linear_1 and linear_2 of a vision transformer's MLP where the target says 0 and 3, and the other way round.

torchvision's MLPBlock was a class of its own before 0.13 and is a Sequential since; its load hook renames only in a
file whose `_metadata` says so, which safetensors and renamed files have lost. Fires on both layers of one block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.keys.placing.tree import Path
from inspector.keys.report import Cost, RuleUse
from inspector.keys.rules.entry import Move, Pair, Phrase, Route, Rule

_OLD, _NEW = ("linear_1", "linear_2"), ("0", "3")


def _routes(pair: Pair) -> Iterator[Route]:
    for old, new in ((_OLD, _NEW), (_NEW, _OLD)):
        ours, theirs = pair.source.children, pair.target.children
        if not all(name in ours and name not in theirs for name in old):
            continue
        if not all(name in theirs and name not in ours for name in new):
            continue
        if any(ours[a].signature != theirs[b].signature for a, b in zip(old, new, strict=True)):
            continue
        for a, b in zip(old, new, strict=True):
            move = Move(RULE.id, f'call "{a}" of an MLP block "{b}"', (("old", a), ("new", b)))
            yield Route(ours[a], theirs[b], (move,), takes=(a,), fills=(b,))


def _renamed(path: Path) -> Path:
    new = dict(zip(_OLD, _NEW, strict=True))
    return tuple(new.get(segment, segment) for segment in path)


def _phrases(use: RuleUse) -> tuple[Phrase, ...]:
    parameters = dict(use.parameters)
    pattern, put = rf"\.mlp\.{parameters['old']}\.", f".mlp.{parameters['new']}."
    return (Phrase(f"key = re.sub({pattern!r}, {put!r}, key)", lambda key: re.sub(pattern, put, key)),)


RULE = Rule(
    id="mlp-names",
    title="MLP of vision transformers",
    says="Calls linear_1 and linear_2 of an MLP block 0 and 3, or back: torchvision's names before and since 0.13.",
    cost=Cost.LOSSLESS,
    done="layers of MLP blocks get their other names",
    routes=_routes,
    names_suffice=True,
    plain=_renamed,
    phrases=_phrases,
)
