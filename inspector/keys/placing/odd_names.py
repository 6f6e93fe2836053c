"""One layer under another name, in a file whose other names are the target's own.

Whoever wrote `fc1`, `fc2_frozen` and `fc3`, or `fc2.gate` beside a plain fc1, calls layers as the target does, and
this one otherwise: it may be the same layer under a longer name, or one that stands beside it and has its shape. Words
that say no more than the target's own (a wrapper, the kind of the layer, another word for it) are no doubt; for all
others the user is asked, once for each word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.keys.placing.ambiguities import AS_PLACED, LEAVE_OUT
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.roles import is_counter
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf, Path, numbered
from inspector.keys.placing.words import is_no_part, is_spelled_like, read, words_of
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules.entry import Link, Questions
from inspector.units import counted

# Of the modules, under the target's own names: from here on its author's words are the target's.
_LEAST_EXACT = 1 / 3
# What a layer is by the dimensions of its weight: words that say nothing else.
_KINDS = {
    n: frozenset(words_of(words)) for n, words in ((1, "norm"), (2, "fc_layer"), (3, "conv"), (4, "conv"), (5, "conv"))
}
_JOINED = re.compile(r"(.+)_(?:weight|bias)")


def settle_odd_names(links: Sequence[Link], questions: Questions) -> tuple[list[Link], list[Leaf]]:
    """(links without doubt or confirmed, tensors held until the user has answered)."""
    modules: dict[tuple[Path, Path], list[Link]] = {}
    for link in links:
        if not is_counter(link.source):
            modules.setdefault((_module(link.source), _module(link.target)), []).append(link)
    exact = sum(ours == theirs for ours, theirs in modules)
    if exact < _LEAST_EXACT * len(modules):
        return list(links), []
    groups: dict[str, list[Link]] = {}
    for (ours, theirs), inside in modules.items():
        if ours == theirs or any(link.evidence is Evidence.CHOSEN for link in inside):
            continue
        word = _odd_word(ours, theirs, inside)
        if word:
            groups.setdefault(word, []).extend(inside)
    kept, held = list(links), []
    for word, doubted in groups.items():
        first = doubted[0]
        answer = questions.ask(
            Ambiguity(
                id="odd-name",
                question=(
                    f'{counted(len(doubted), "tensor")} {"has" if len(doubted) == 1 else "have"} "{word}" in the name, '
                    f"which nothing in the target's has, {first.source.name} as {shown(first.target)} first; "
                    f"{counted(exact, 'module')} beside {'it' if len(doubted) == 1 else 'them'} are called as in the "
                    "target. Are they the same layers?"
                ),
                options=(
                    (AS_PLACED, "yes, the same under another name"),
                    (LEAVE_OUT, "no, or not known: leave them out"),
                ),
            ),
            place=word,
        )
        if answer != AS_PLACED:
            away = {link.source.name for link in doubted}
            kept = [link for link in kept if link.source.name not in away]
            if answer is None:
                held += [link.source for link in doubted]
    return kept, held


def _module(leaf: Leaf) -> Path:
    """The name's levels but for the last; of `head.criterion_weight` head and criterion."""
    *above, last = leaf.name.split(".")
    joined = _JOINED.fullmatch(last)
    return (*above, joined[1]) if joined else tuple(above)


def _odd_word(ours: Path, theirs: Path, links: Sequence[Link]) -> str:
    """What the file's name says that its place's does not, as the file writes it; "" for nothing."""
    if read(ours, 0).roles & read(theirs, 0).roles:
        return ""
    there = {word for segment in theirs for word in words_of(segment)}
    dimensions = max((len(link.target.shape or ()) for link in links), default=0)
    harmless = EMPTY | there | _KINDS.get(dimensions, frozenset())
    for segment in ours:
        words = {*words_of(segment)} - EMPTY
        said = {word for word in words - harmless if not any(is_spelled_like(word, other) for other in there)}
        # A level of its own may be a network's name; in one with a layer's it tells two of them apart.
        if said and not (said == words and all(map(is_no_part, said))):
            return segment
    return _counted(ours, theirs)


def _counted(ours: Path, theirs: Path) -> str:
    """A part of the file with a number behind its word where the target has the word alone: decoder2 for decoder."""
    for segment in ours[:-1]:
        stem = numbered(segment)
        if stem and stem[0] in theirs[:-1] and segment not in theirs:
            return segment
    return ""
