"""Words of one name that stand where the other has others: short_conv for long_conv, cls_token for dist_token.

A name that is longer says more of the same; one that says something else in the same place speaks of another part,
unless both words mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain

from inspector.keys.placing.another_part import are_two_places, tells_apart
from inspector.keys.placing.synonyms import EMPTY, PARTS
from inspector.keys.placing.tree import Path, numbered
from inspector.keys.placing.words import (
    all_words,
    are_beside,
    is_no_part,
    is_spelled_like,
    is_told_beside_others,
    read,
    words_of,
)

# Where a word begins with a capital.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A word that says nothing by itself, and all beside the other.
_SELF, _CROSS = "self", "cross"


def replaced(ours: Path, theirs: Path, *, harmless: frozenset[str] = frozenset()) -> tuple[str, str] | None:
    """What the file's name and the target's say in each other's place, as they write it; None where they agree, where
    one only says more, and where their words are known to mean the same. harmless: words that say nothing here."""
    start = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    left, right = ours[start:], theirs[start:]
    ends = len(left)
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    if not left or not right:
        return None
    said, there = _words(left), _words(right)
    crossed = {_SELF, _CROSS} <= _plain(left) ^ _plain(right) or by_a_letter(left, right)
    if crossed or tells_apart(left, right):
        return _shown(left), _shown(right)
    # What a layer is for says nothing of what stands around it: fc1 of an output, fc1 of a value.
    whole = ends == len(left)
    if read(left, 0).roles & read(right, 0).roles or (whole and read(ours, 0).roles & read(theirs, 0).roles):
        return None
    if any(is_told_beside_others(a[-1]) and _is_told_or_counted(b[-1]) for a, b in ((left, right), (right, left))):
        return None  # Meta's w1 and w3
    # A word that is misspelt is no longer read as the two that it is joined of.
    known = there | _plain(right)
    own = {x for x in said - _words(theirs) - harmless if not any(is_spelled_like(x, other) for other in known)}
    foreign = {x for x in there - _words(ours) - harmless if not any(is_spelled_like(x, other) for other in said)}
    if not own or not foreign or are_beside(frozenset(own), frozenset(foreign)):
        return None
    # What whole networks are called says nothing at the top; below it is the name of a part.
    networks = [all(is_no_part(word) and word not in PARTS for word in words) for words in (own, foreign)]
    # The stem of one is no head of the other; what is counted in either may be the other's first.
    apart = not any(map(str.isdecimal, (*left, *right))) and are_two_places(frozenset(own), frozenset(foreign))
    if not apart and (all(networks) or (any(networks) and not start)):
        return None
    return _shown(left), _shown(right)


def _is_told_or_counted(segment: str) -> bool:
    return is_told_beside_others(segment) or all(len(word) == 1 or word == "fc" for word in words_of(segment))


def lone_number(ours: Path, theirs: Path, counted: Mapping[tuple[Path, str], set[int]]) -> tuple[str, str] | None:
    """What differs of two names, if it is the number behind a word alone and the file counts no further: of w1 and w3
    one is a gate.

    counted: the numbers that the file has behind each word below each path.
    """
    apart = [n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    if len(apart) != 1 or len(ours) != len(theirs):
        return None
    one, other = numbered(ours[apart[0]]), numbered(theirs[apart[0]])
    if one is None or other is None or not one[0] or one[0] != other[0]:
        return None
    return (ours[apart[0]], theirs[apart[0]]) if len(counted[ours[: apart[0]], one[0]]) == 1 else None


def numbers_of(paths: Iterable[Path]) -> dict[tuple[Path, str], set[int]]:
    """The numbers behind each word below each path."""
    found: dict[tuple[Path, str], set[int]] = {}
    for path in paths:
        for n, segment in enumerate(path):
            if (stem := numbered(segment)) is not None:
                found.setdefault((path[:n], stem[0]), set()).add(stem[1])
    return found


def by_a_letter(left: Path, right: Path) -> bool:
    """rel_pos_h and rel_pos_w, lora_A and lora_B, c0 and h0: all else is said alike, in the same places."""
    one, other = (list(chain.from_iterable(map(_pieces, path))) for path in (left, right))
    apart = [_without_number(*pair) for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    return (
        len(one) == len(other)
        and bool(apart)
        and all(len(text) == 1 and text.isalpha() for pair in apart for text in pair)
    )


def _without_number(one: str, other: str) -> tuple[str, str]:
    """What stands before the number that both end in."""
    return (one[:1], other[:1]) if one[1:] == other[1:] and one[1:].isdecimal() else (one, other)


def _pieces(segment: str) -> list[str]:
    return _HUMP.sub("_", segment).lower().split("_")


def _words(path: Path) -> frozenset[str]:
    return all_words(path) - EMPTY


def _plain(path: Path) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(_pieces, path)))


def _shown(path: Path) -> str:
    """Its numbers as N: one question for every layer."""
    return ".".join("N" if segment.isdecimal() else segment for segment in path)
