"""Hundreds of keys as a few patterns: layer3.*.conv1.{weight,bias}, each with how many keys it stands for.

A star stands for a number; the braces hold what the same modules have. A pattern never claims more than is there: the
modules of one pattern have exactly these tensors, and where all share one number, the number stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STAR = "*"
_ENDING = re.compile(r"(?<=[^\d*])\d+\Z")
_MANY = 8  # layer1 to layer4 are read as names, block0 to block23 as numbers
_LEAVES = 6  # shown in braces


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One pattern and the names it stands for, in their own order."""

    pattern: str
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many keys."""
        return len(self.names)


def fold(names: Iterable[str]) -> tuple[Fold, ...]:
    """Patterns in the order of their first names; together they hold every name once. Linear in the names' length."""
    modules: dict[str, dict[str, str]] = {}
    for name in names:
        leaf = name.rpartition(".")[2]
        # With its dot: "" and "." are two names.
        modules.setdefault(name[: len(name) - len(leaf)], {})[leaf] = name
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for template, module in zip(_templates(modules), modules, strict=True):
        alike.setdefault((template, tuple(modules[module])), []).append(module)
    made = []
    for (template, inside), members in alike.items():
        pattern = ".".join(_settled(template, members)) + _braced(inside)
        found = tuple(name for module in members for name in modules[module].values())
        made.append(Fold(pattern=pattern, names=found))
    return tuple(made)


def _templates(modules: Iterable[str]) -> list[tuple[str, ...]]:
    """Each module with stars for numbers; block17 is block* only where there are many such."""
    exact = [tuple(STAR if s.isdecimal() else s for s in module.split(".")) for module in modules]
    loose = [tuple(_ENDING.sub(STAR, segment) for segment in template) for template in exact]
    seen: dict[tuple[str, ...], list[set[str]]] = {}
    for template, wide in zip(exact, loose, strict=True):
        for place, segment in zip(seen.setdefault(wide, [set() for _ in wide]), template, strict=True):
            place.add(segment)
    return [
        tuple(w if len(place) > _MANY else t for t, w, place in zip(template, wide, seen[wide], strict=True))
        for template, wide in zip(exact, loose, strict=True)
    ]


def _settled(template: tuple[str, ...], modules: Sequence[str]) -> tuple[str, ...]:
    """The template with a number wherever all modules have the same one."""
    columns = zip(*(module.split(".") for module in modules), strict=True)
    return tuple(
        next(iter(seen)) if STAR in piece and len(seen) == 1 else piece
        for piece, seen in zip(template, map(set, columns), strict=True)
    )


def _braced(leaves: tuple[str, ...]) -> str:
    if len(leaves) == 1:
        return leaves[0]
    if all(leaf.isdecimal() for leaf in leaves):
        return STAR
    more = f",… {len(leaves) - _LEAVES:,} more" if len(leaves) > _LEAVES else ""
    return "{" + ",".join(leaves[:_LEAVES]) + more + "}"


def search(names: Iterable[str], words: str) -> tuple[str, ...]:
    """The names in which every word occurs, in any case; a star in a word stands for anything between its parts."""
    wanted = [[part for part in word.split(STAR) if part] for word in words.lower().split()]
    return tuple(name for name in names if all(_holds(name.lower(), parts) for parts in wanted))


def _holds(name: str, parts: Sequence[str]) -> bool:
    at = 0
    for part in parts:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def folded_line(names: Sequence[str], most: int) -> str:
    """'layer1.*.conv1.weight (3), fc.{weight,bias} (2) and 12 more' for one line; most: how many patterns."""
    folds = fold(names)
    shown = [f"{f.pattern} ({f.count:,})" if f.count > 1 else f.pattern for f in folds[:most]]
    left = sum(f.count for f in folds[most:])
    return ", ".join(shown) + (f" and {left:,} more" if left else "")
