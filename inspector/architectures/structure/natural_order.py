"""Modules in the order of the numbers in their names, where a file sorts them: "0", "2", "10", "netOne", "netTwo"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from inspector.checkpoint.types import ModuleNode

_PIECES = re.compile(r"\d+|\D+")
_LEAST = 3
_LONGEST = 9  # digits of a number in a name
# Whole or cut to three letters, as "netThr" is.
_WORD = re.compile(
    r"(.*?)(zero|one|two|thr(?:ee)?|fou(?:r)?|fiv(?:e)?|six|sev(?:en)?|eig(?:ht)?|nin(?:e)?|ten)", re.I | re.S
)
_WORDS = ("zer", "one", "two", "thr", "fou", "fiv", "six", "sev", "eig", "nin", "ten")

Key = tuple[tuple[int, int, str], ...]


def in_natural_order(node: ModuleNode) -> ModuleNode:
    """The tree with the children of every module in that order."""
    if not node.children:
        return node
    numbers = number_words(child.name for child in node.children)
    children = sorted(node.children, key=lambda child: _key(child.name, numbers))
    return replace(node, children=tuple(in_natural_order(child) for child in children))


def number_words(names: Iterable[str]) -> Mapping[str, tuple[str, int]]:
    """Name -> (what stands before, number) of names that end in number words one after the other, three at least:
    "netTwo", "netThr", "netFou" -> ("net", 2), ("net", 3), ("net", 4)."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name in names:
        worded = _in_word(name)
        if worded is not None:
            found[worded[0]][name] = worded[1]
    return {
        name: (stem, number)
        for stem, numbered in found.items()
        if len(numbered) >= _LEAST
        and sorted(numbered.values()) == [*range(min(numbered.values()), max(numbered.values()) + 1)]
        for name, number in numbered.items()
    }


# Of thousands of modules few have another name than their neighbours'.
@lru_cache(maxsize=4096)
def _in_word(name: str) -> tuple[str, int] | None:
    match = _WORD.fullmatch(name)
    return (match[1], _WORDS.index(match[2][:3].lower())) if match is not None else None


def _key(name: str, numbers: Mapping[str, tuple[str, int]]) -> Key:
    if name in numbers:
        stem, number = numbers[name]
        return *_pieces(stem), (0, number, "")
    return _pieces(name)


def _pieces(name: str) -> Key:
    return tuple(
        (0, int(piece), "") if piece.isdecimal() and piece.isascii() and len(piece) <= _LONGEST else (1, 0, piece)
        for piece in _PIECES.findall(name)
    )
