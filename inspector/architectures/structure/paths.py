"""Dotted names of modules, from the innermost outwards."""

from __future__ import annotations

from collections.abc import Iterator

# Names of hostile depth would cost quadratic time; no network nests so deep.
_DEEPEST = 64


def above(path: str) -> Iterator[str]:
    """The modules that one is in: "a.b.c" -> "a.b", "a", ""."""
    for _ in range(_DEEPEST):
        if not path:
            return
        path = path.rpartition(".")[0]
        yield path
    if path:
        yield ""
