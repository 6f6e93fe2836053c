"""Numbered blocks in two lists of names: a deeper network, or the same one with a shifted numbering?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Fewer tensors than this under a number are a layer, not a block.
_BLOCK = 4
Tails = dict[str, dict[int, set[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """stem: "encoder.layer". extra: first and last number that only one side has. in_model: which side."""

    stem: str
    first: int
    last: int
    in_model: bool


def find_depths(missing: Iterable[str], unexpected: Iterable[str]) -> tuple[Depth, ...]:
    """Stems whose numbers go on beyond the other side's last; both sides share the numbers before these."""
    ours, theirs = _blocks(unexpected), _blocks(missing)
    found = []
    for blocks, other, in_model in ((theirs, ours, True), (ours, theirs, False)):
        for stem, numbered in blocks.items():
            first, last = min(numbered), max(numbered)
            if first > 0 and stem not in other and len(numbered) == last - first + 1 and _repeat(numbered):
                found.append(Depth(stem=stem, first=first, last=last, in_model=in_model))
    return tuple(found)


def find_renumbered(missing: Iterable[str], unexpected: Iterable[str]) -> tuple[str, ...]:
    """Stems under which both lists have the same names with other numbers: "layers" for layers.0.bias, layers.3.bias.

    The numbers in between are in neither list, because names agree; whether the layers do is not known.
    """
    ours, theirs = _blocks(unexpected), _blocks(missing)
    found = []
    for stem in theirs.keys() & ours.keys():
        names = set().union(*theirs[stem].values()) & set().union(*ours[stem].values())
        if names and not theirs[stem].keys() & ours[stem].keys():
            found.append(stem)
    return tuple(sorted(found))


def _repeat(numbered: dict[int, set[str]]) -> bool:
    """Whether these are repeated blocks, and not a head that happens to stand under a number."""
    tails = list(numbered.values())
    return min(len(t) for t in tails) >= _BLOCK or (len(tails) > 1 and all(t == tails[0] for t in tails))


def _blocks(names: Iterable[str]) -> Tails:
    """stem -> number -> names below it, by the first segment that is a number."""
    found: Tails = {}
    for name in names:
        segments = name.split(".")
        for i, segment in enumerate(segments):
            if segment.isascii() and segment.isdigit() and len(segment) < 6:
                tail = ".".join(segments[i + 1 :])
                found.setdefault(".".join(segments[:i]), {}).setdefault(int(segment), set()).add(tail)
                break
    return found
