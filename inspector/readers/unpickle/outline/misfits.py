"""Known rebuild functions whose arguments make no tensor: where, which and why."""

from __future__ import annotations

_KEPT = 20


class Misfits:
    """The first few, as (path, function, why), and how many there are in all."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        self.first: list[tuple[tuple[str, ...], str, str]] = []
        self.count = 0

    def add(self, path: tuple[str, ...], what: str, why: str) -> None:
        """Note one; an empty reason is none."""
        if not why:
            return
        self.count += 1
        if len(self.first) < _KEPT:
            self.first.append((path, what, why))
