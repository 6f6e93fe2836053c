"""One layer under another name, in a file whose other names are the target's own.

Whoever wrote `fc1`, `fc2_frozen` and `fc3`, or `fc2.gate` beside a plain fc1, calls layers as the target does, and
this one otherwise: it may be the same layer under a longer name, or one that stands beside it and has its shape. Words
that say no more than the target's own (a wrapper, the kind of the layer, another word for it) are no doubt; for all
others the user is asked, once for each word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from inspector.checkpoint.level_words import ASIDE_WORDS
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.keys.placing.added_words import answered_words
from inspector.keys.placing.contradictions import LEAST_EXACT
from inspector.keys.placing.doubtful import SAME_OR_OUT, decide
from inspector.keys.placing.joined_levels import in_one_form
from inspector.keys.placing.kinds import shown
from inspector.keys.placing.replaced_words import lone_number, numbers_of, replaced
from inspector.keys.placing.roles import OTHER_QUANTITIES, is_counter, roles_of
from inspector.keys.placing.synonyms import EMPTY
from inspector.keys.placing.tree import Leaf, Path, numbered
from inspector.keys.placing.words import all_words, is_called_by_its_kind, is_no_part, is_spelled_like, read, words_of
from inspector.keys.report import Ambiguity, Evidence
from inspector.keys.rules import index_shift, other_words, prefix_tokens, related_names, wrapper_segment
from inspector.keys.rules.entry import Link, Questions
from inspector.units import counted

# A module of the file and its place.
_Pair: TypeAlias = tuple[Path, Path]
# What a layer is by the dimensions of its weight: words that say nothing else.
_KINDS = {
    n: frozenset(words_of(words)) for n, words in ((1, "norm"), (2, "fc_layer"), (3, "conv"), (4, "conv"), (5, "conv"))
}
# Rules that go by what words mean, or take levels off.
_BY_WORDS = frozenset(one.RULE.id for one in (wrapper_segment, other_words, prefix_tokens, related_names))
# Levels that libraries put around a layer: of an adapted module PEFT's.
_SET_AROUND = WRAPPER_SEGMENTS | {"modules_to_save", "default", "base_layer", "original_module"}
# Words of an author that say nothing of a layer.
_IDLE = frozenset({"my", "our", "own", "custom"})
# Words that tell a part from another of the same kind: from another time, place or hand.
_APART = (
    ASIDE_WORDS
    | {"frozen", "pretrained", "student", "source", "local", "global", "server", "client", "new", "last"}
    | {"start", "left", "right", "first", "second"}
)
_NUMBER = re.compile(r"[0-9]+")
_JOINED = re.compile(r"(.+)_(?:weight|bias)")


def settle_odd_names(links: Sequence[Link], questions: Questions) -> tuple[list[Link], list[Leaf]]:
    """(links without doubt or confirmed, tensors held until the user has answered)."""
    modules: dict[_Pair, list[Link]] = {}
    own, other = _around([(link.source.name, link.target.name) for link in links])
    sides = [link.source for link in links], [link.target for link in links]
    names = {link.source.name for link in links if link.source.name.endswith(".bias")}
    known: dict[tuple[str, str], Path] = {}
    for link, ours, theirs in zip(links, *map(roles_of, sides), strict=True):
        if not is_counter(link.source):
            # A scale beside a bias is how Flax calls a norm's weight.
            if link.source.name.endswith(".scale") and f"{link.source.name[:-5]}bias" in names:
                ours = "weight"
            pair = _module(link.source, ours, own, known), _module(link.target, theirs, other, known)
            modules.setdefault(pair, []).append(link)
    modules = _in_one_form(modules)
    exact = sum(ours == theirs for ours, theirs in modules)
    if exact < LEAST_EXACT * len(modules):
        return list(links), []
    # Of most files every name is the target's, and neither is looked at.
    apart = any(ours != theirs for ours, theirs in modules)
    below = Counter(ours[:n] for ours, _ in modules for n in range(1, len(ours) + 1)) if apart else Counter()
    counted_by = numbers_of(ours for ours, _ in modules) if any(map(_is_shifted, links)) else {}
    longer: dict[str, list[Link]] = {}
    groups: dict[tuple[str, str], list[Link]] = {}
    for pair, inside in modules.items():
        if pair[0] == pair[1]:
            continue
        if all(_is_shifted(link) for link in inside) and (lone := lone_number(*pair, counted_by)) is not None:
            groups.setdefault(lone, []).extend(inside)
        if not all(map(_may_be_odd, inside)):
            continue
        dimensions = max((len(link.target.shape or ()) for link in inside), default=0)
        words = replaced(*pair, harmless=_KINDS.get(dimensions, frozenset()) | _IDLE)
        if words is not None:
            groups.setdefault(words, []).extend(inside)
        elif word := _odd_level(pair, inside, below):
            longer.setdefault(word, []).extend(inside)
    groups |= {(word, ""): group for word, group in longer.items()}
    # A row of layers that are counted is named so by its author.
    rows = Counter(_NUMBER.sub("", word) for word, _ in groups)
    groups = {words: group for words, group in groups.items() if rows[_NUMBER.sub("", words[0])] == 1}
    kept: list[Link] = list(links)
    held: list[Leaf] = []
    answered = answered_words(questions) if groups else frozenset()
    for (word, place), doubted in groups.items():
        if words_of(word) and answered.issuperset(words_of(word)):
            continue
        answer = questions.ask(_question(word, place, doubted, exact), place=word)
        kept = decide(answer, doubted, kept, held)
    return kept, held


def _in_one_form(modules: Mapping[_Pair, list[Link]]) -> dict[_Pair, list[Link]]:
    made: dict[_Pair, list[Link]] = {}
    for pair, links in modules.items():
        made.setdefault(pair if pair[0] == pair[1] else in_one_form(*pair), []).extend(links)
    return made


def _question(word: str, place: str, doubted: Sequence[Link], exact: int) -> Ambiguity:
    """place: what the target says where the file says the word, "" for nothing."""
    first, one = doubted[0], len(doubted) == 1
    beside = f'where the target has "{place}"' if place else "which nothing in the target's has"
    return Ambiguity(
        id="odd-name",
        question=(
            f'{counted(len(doubted), "tensor")} {"has" if one else "have"} "{word}" in the name, {beside}, '
            f"{first.source.name} as {shown(first.target)} first; {counted(exact, 'module')} beside "
            f"{'it' if one else 'them'} are called as in the target. Are they the same layers?"
        ),
        options=SAME_OR_OUT,
    )


def _around(names: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """What most of the file's names have before the target's, with the dot, and the other way round: "module." of a
    wrapper is no part of a layer's name."""
    more = Counter(ours.removesuffix(theirs) for ours, theirs in names if ours.endswith(f".{theirs}"))
    less = Counter(theirs.removesuffix(ours) for ours, theirs in names if theirs.endswith(f".{ours}"))
    found = [max(one, key=lambda text: one[text], default="") for one in (more, less)]
    enough = [
        text if one[text] >= len(names) * LEAST_EXACT else "" for one, text in zip((more, less), found, strict=True)
    ]
    return enough[0], enough[1]


def _module(leaf: Leaf, role: str | None, around: str, known: dict[tuple[str, str], Path]) -> Path:
    """The name's levels without what only says weight or bias, nor what is around all names; of
    `head.criterion_weight` head and criterion. known: the levels of the modules that were seen, which is added to."""
    module, dot, last = leaf.name.removeprefix(around).rpartition(".")
    key = module, dot
    if key not in known:
        known[key] = tuple(module.split(".")) if dot else ()
    above = known[key]
    joined = _JOINED.fullmatch(last) if "_" in last else None
    if joined:
        return (*above, joined[1])
    return (*above, last) if role is None or role in OTHER_QUANTITIES else above


def _may_be_odd(link: Link) -> bool:
    """Whether what its name means was read from words alone: no table of a library, no user, and nothing is lost."""
    same = link.target.shape is None or link.source.shape == link.target.shape
    return same and link.evidence is not Evidence.CHOSEN and all(move.rule in _BY_WORDS for move in link.moves)


def _is_shifted(link: Link) -> bool:
    return any(move.rule == index_shift.RULE.id for move in link.moves)


def _odd_level(pair: _Pair, links: Sequence[Link], below: Mapping[Path, int]) -> str:
    """What the file's name says that its place's does not, as the file writes it; "" for nothing.

    below: how many modules of the file lie under each path.
    """
    ours, theirs = pair
    if _roles(ours) & _roles(theirs) or is_called_by_its_kind(ours, theirs):
        return ""
    there = {word for link in links for word in all_words(tuple(link.target.name.split(".")))}
    dimensions = max((len(link.target.shape or ()) for link in links), default=0)
    harmless = EMPTY | _IDLE | there | _KINDS.get(dimensions, frozenset())
    for n, segment in enumerate(ours, start=1):
        words = {word for word in words_of(segment) if len(word) > 1 or word in ASIDE_WORDS} - EMPTY
        said = {word for word in words - harmless if not any(is_spelled_like(word, other) for other in there)}
        if below[ours[:n]] > 1:
            # Of a part of many layers an author's longer name is no doubt, but for words that tell two of them apart.
            said &= _APART
        # A level of its own may be a network's name; in one with a layer's it tells two of them apart.
        if said and segment not in _SET_AROUND and not (said == words and all(map(is_no_part, said))):
            return segment
    return _counted(ours, theirs)


def _roles(path: Path) -> frozenset[str]:
    """Also of head.1 and classifier.6, the layer of a short row."""
    named = next((n for n in range(len(path), 0, -1) if not path[n - 1].isdecimal()), 0)
    return read(path, 0).roles | read(path[:named], 0).roles


def _counted(ours: Path, theirs: Path) -> str:
    """A part of the file with a number behind its word where the target has the word alone: decoder2 for decoder."""
    for segment in ours[:-1]:
        stem = numbered(segment)
        if stem and stem[0] in theirs[:-1] and segment not in theirs:
            return segment
    return ""
