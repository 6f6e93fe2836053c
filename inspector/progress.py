"""Progress and cancel for long work.

A long function takes `progress: Progress = silent` and calls `progress(done, total, note)` before each tensor or
batch, at least every 0.2 s. The call is also the cancel point: the caller stops the work by raising `Stopped` from it.
"""

from __future__ import annotations

from typing import Protocol


class Stopped(Exception):
    """Raised by a progress callback to end the work. Functions clean up in `finally` and let it pass."""


class Progress(Protocol):
    """done and total are in the same unit (bytes, tensors, images); total is None when unknown."""

    def __call__(self, done: int, total: int | None, note: str) -> None: ...


def silent(done: int, total: int | None, note: str) -> None:
    """The progress of somebody who does not look."""


# Of one piece among several, for the progress inside it.
_PARTS = 1000


def part_of(progress: Progress, number: int, count: int, name: str) -> Progress:
    """The progress of one of `count` equal pieces, called by its name. number: from 0."""

    def publish(done: int, total: int | None, note: str) -> None:
        inside = min(_PARTS, _PARTS * done // total) if total else 0
        progress(number * _PARTS + inside, count * _PARTS, f"{name}: {note}" if note else name)

    return publish
