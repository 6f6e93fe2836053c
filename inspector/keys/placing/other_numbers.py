"""Levels that were taken off a name and say what the numbers below are: no weights, or those of another moment.

Names and shapes fit either way (`scale.fc1.weight`, `init.fc1.weight`), so this is asked, whichever rule had the level
taken off. What is an average, or the weights of another epoch, is asked about only where other tensors of the network
are not: alone in its file it is what there is (`checks/origins.py` says so).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from inspector.checkpoint.level_words import (
    is_another_moment,
    is_before_training,
    is_not_as_used,
    is_quantity,
    is_quantity_of_all,
)
from inspector.keys.placing.doubtful import AS_PLACED, LEAVE_OUT, decide
from inspector.keys.placing.roles import is_counter
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf
from inspector.keys.placing.words import all_words, words_of
from inspector.keys.report import Ambiguity
from inspector.keys.rules.entry import Link, Questions
from inspector.units import counted

_LEVELS = re.compile(r"[./]")
_SEPARATORS = re.compile(r"[^0-9a-z]+")
_ROLES = frozenset({"weight", "weights", "bias", "biases"})


class Says(StrEnum):
    """What a level says of the numbers below. The value: how a question puts it."""

    QUANTITY = "may say that the numbers are about weights"
    NOT_AS_USED = "says that these are not the weights as the network has them"
    BEFORE = "says that these are the weights from before training"
    MOMENT = "says that these are the weights of another moment, or an average"


# How it is put where only a part of the tensors has such a level: a layer may be called so.
_OF_A_PART = {
    Says.QUANTITY: f"{Says.QUANTITY}, or be what the layer gives (the head of a mean)",
    Says.BEFORE: "may say that these are the weights from before training, or that the layer comes first",
}
_OPTIONS = {
    Says.QUANTITY: ((AS_PLACED, "yes, these are the weights"), (LEAVE_OUT, "no, or not known: leave them out")),
    Says.NOT_AS_USED: ((AS_PLACED, "yes, these are the weights"), (LEAVE_OUT, "no, or not known: leave them out")),
    Says.BEFORE: ((AS_PLACED, "yes, these are wanted"), (LEAVE_OUT, "no, or not known: leave them out")),
    Says.MOMENT: ((AS_PLACED, "yes, they are one network's"), (LEAVE_OUT, "no, or not known: leave them out")),
}


def settle_other_numbers(
    links: Sequence[Link], own_names: Mapping[str, str], around: Sequence[str], questions: Questions
) -> tuple[list[Link], list[Leaf]]:
    """(links without doubt or confirmed, tensors held until the user has answered).

    own_names: as the file has them, by the names that they read as. around: the keys that the set lies under.
    """
    groups: dict[tuple[Says, str], list[Link]] = {}

    def own(link: Link) -> str:
        return ".".join((*around, own_names.get(link.source.name, link.source.name)))

    counting = [link for link in links if not is_counter(link.source)]
    wide: dict[tuple[Says, str], list[Link]] = {}
    for link in counting:
        if (found := lost_level(own(link), link.target.name)) is not None:
            groups.setdefault(found, []).append(link)
        elif (found := lost_level(own(link), link.target.name, of_all=True)) is not None:
            wide.setdefault(found, []).append(link)
    # What a layer may be called, no wrapper of all layers is. Of a mean_shift the target's running_mean has a word.
    for found, doubted in wide.items():
        if 2 * len(doubted) > len(counting) and all(found[1] in own(link) for link in counting):
            groups[found] = counting
    # Whoever chose this set of several has said that it is meant.
    chosen = {level for key in questions.used for level in questions.answers[key].split(".")}
    total = len(counting)
    kept: list[Link] = list(links)
    held: list[Leaf] = []
    for (says, level), doubted in groups.items():
        if level in chosen or (says is Says.MOMENT and len(doubted) == total):
            continue
        first = doubted[0]
        means = says if len(doubted) == total else _OF_A_PART.get(says, says)
        answer = questions.ask(
            Ambiguity(
                id="other-numbers",
                question=(
                    f'"{level}" in the names of {counted(len(doubted), "tensor")} {means}, and without it {own(first)} '
                    f"would be {first.target.name}{_beside(says, total - len(doubted))} {_ASKS[says]}"
                ),
                options=_OPTIONS[says],
            ),
            place=level,
        )
        kept = decide(answer, doubted, kept, held)
    return kept, held


_ASKS = {
    Says.QUANTITY: "Are they the weights?",
    Says.NOT_AS_USED: "Are they the weights?",
    Says.BEFORE: "Are they wanted?",
    Says.MOMENT: "Are they parts of one network?",
}


def _beside(says: Says, others: int) -> str:
    return f", beside {counted(others, 'tensor')} without it." if says is Says.MOMENT else "."


@lru_cache(maxsize=20_000)
def lost_level(ours: str, theirs: str, *, of_all: bool = False) -> tuple[Says, str] | None:
    """What a level of the file's name says that no word of its place does, and the level; None for nothing.

    of_all: whether it is asked of a level that all names have, which no layer is called after.
    """
    if ours == theirs:
        return None
    there = _said(theirs)
    for level in _levels(ours):
        says = _says(level, of_all)
        told = frozenset(words_of(level)) - EMPTY
        # Every name has a weight: of a lr_per_weight that is not what the level says.
        if says is not None and there.isdisjoint(told - _ROLES or told):
            return says, level
    return _joined(ours, theirs, of_all)


@lru_cache(maxsize=20_000)
def _said(name: str) -> frozenset[str]:
    return all_words(tuple(_LEVELS.split(name)))


def _levels(name: str) -> list[str]:
    return _LEVELS.split(name)[:-1]


@lru_cache(maxsize=4096)
def _says(level: str, of_all: bool) -> Says | None:
    if is_quantity(level) or (of_all and is_quantity_of_all(level)):
        return Says.QUANTITY
    if of_all and is_not_as_used(level):
        return Says.NOT_AS_USED
    if is_before_training(level):
        return Says.BEFORE
    return Says.MOMENT if is_another_moment(level) else None


def _joined(ours: str, theirs: str, of_all: bool) -> tuple[Says, str] | None:
    """Such a word that is written onto a name with an underscore: before all of it, or onto a level that the target
    has without it."""
    for word, rest in _split(ours, before=True):
        if _squashed(theirs).endswith(_squashed(rest)) and (says := _says(word, of_all)) is not None:
            own = _LEVELS.split(word)[-1]
            return None if own in theirs else (says, own)
    there = frozenset(_levels(theirs))
    for level in _levels(ours):
        for before in () if level in there or _says(level, of_all) is not None else (True, False):
            for word, rest in _split(level, before=before):
                if rest in there and (says := _says(word, of_all)) is not None:
                    return says, word
    return None


def _split(name: str, *, before: bool) -> Iterator[tuple[str, str]]:
    """(what stands before an underscore, the rest), or (what stands behind it, the rest)."""
    for found in re.finditer("_", name.partition(".")[0] if before else name):
        one, other = name[: found.start()], name[found.end() :]
        if one and other:
            yield (one, other) if before else (other, one)


@lru_cache(maxsize=20_000)
def _squashed(name: str) -> str:
    return _SEPARATORS.sub("", name.lower())
