"""A job as the broker has it: waiting, at work, or waiting in its middle for memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from inspector.jobs.kind import Kind


@dataclass(eq=False)
class Task:
    """number: by which the server knows it. near: the file that it is about. apart: as a `Job`'s. allowance: memory
    it may take beyond what its worker held when it began (`before`). wants: what it asked for beside that and waits
    for, 0 for nothing. begun: when the work began, waits for memory left out. stopping: when it was told to stop.
    fault: why it was ended, where we ended it. place: in the queue, as it was told.
    """

    number: int
    kind: Kind
    key: str
    arguments: bytes
    visitor: str
    near: str
    apart: str = ""
    asked: float = field(default_factory=time.monotonic)
    allowance: int = 0
    before: int = 0
    wants: int = 0
    begun: float = 0.0
    stopping: float | None = None
    fault: Exception | None = None
    place: int = 0

    @property
    def turn(self) -> float:
        """Where it stands in the queue: the smallest is next."""
        return self.asked + self.kind.behind


class Durations:
    """What jobs of each kind took lately, for an expectation."""

    def __init__(self) -> None:
        self._mean: dict[str, float] = {}

    def add(self, kind: Kind, seconds: float) -> None:
        known = self._mean.get(kind.id)
        self._mean[kind.id] = seconds if known is None else 0.7 * known + 0.3 * seconds

    def of(self, kind: Kind) -> float:
        """Seconds that one will take, about."""
        return self._mean.get(kind.id, 20.0 if kind.long else 1.0)
