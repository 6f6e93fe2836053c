"""What a job has in hand while it is worked on: progress, memory to ask for, and what the worker kept from before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

from inspector.jobs.settings import Settings

T = TypeVar("T")

# What one worker keeps of models and looks between jobs.
KEPT_NBYTES = 1_000_000_000


class Desk(Protocol):
    """Who the job answers to: a broker at the other end of a pipe, or nobody."""

    def publish(self, done: int, total: int | None, note: str) -> None:
        """Raises Stopped where nobody waits any more."""

    def need(self, nbytes: int, instead: str) -> None:
        """Raises WorkEnded where there will never be so much."""


class Bench:
    """One for each worker. tags: of what it keeps, so that a job about the same file comes here."""

    def __init__(self, settings: Settings, desk: Desk, kept_nbytes: int = KEPT_NBYTES) -> None:
        self.settings = settings
        self._desk = desk
        self._kept: OrderedDict[Hashable, tuple[Any, int, str]] = OrderedDict()
        self._most = kept_nbytes

    @property
    def tags(self) -> frozenset[str]:
        """Digests of the files that something is kept of."""
        return frozenset(tag for _, _, tag in self._kept.values() if tag)

    def progress(self, done: int, total: int | None, note: str) -> None:
        """As `inspector.progress.Progress`."""
        self._desk.publish(done, total, note)

    def need(self, nbytes: int, *, instead: str = "") -> None:
        """Ask for memory beyond what jobs of this kind may take, and wait until it is there.

        instead: what would fit, for the sentence where it never will. Raises WorkEnded then.
        """
        self._desk.need(nbytes, instead)

    def keep(self, key: Hashable, make: Callable[[], T], *, nbytes: Callable[[T], int], tag: str = "") -> T:
        """What was kept under the key, else what `make` gives, which is kept; the least recently used go."""
        if key in self._kept:
            self._kept.move_to_end(key)
            found: T = self._kept[key][0]
            return found
        made = make()
        self._kept[key] = (made, nbytes(made), tag)
        while len(self._kept) > 1 and sum(size for _, size, _ in self._kept.values()) > self._most:
            self._kept.popitem(last=False)
        return made
