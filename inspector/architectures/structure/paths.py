"""Dotted names of modules, from the innermost outwards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

# Names of hostile depth would cost quadratic time; no network nests so deep.
_DEEPEST = 64


def above(path: str) -> tuple[str, ...]:
    """The modules that one is in: "a.b.c" -> "a.b", "a", ""."""
    return _above(path) if path.count(".") < _DEEPEST else tuple(_nearest(path))


# A score of rules asks for the same modules one after the other; neighbours share what they are in.
@lru_cache(maxsize=1 << 15)
def _above(path: str) -> tuple[str, ...]:
    if not path:
        return ()
    parent = path.rpartition(".")[0]
    return parent, *_above(parent)


def _nearest(path: str) -> Iterator[str]:
    """Of a name of hostile depth: the nearest modules, and the outermost."""
    for _ in range(_DEEPEST):
        if not path:
            return
        path = path.rpartition(".")[0]
        yield path
    if path:
        yield ""
