"""A kind of work that a worker does: where it stands in the code, what it may take, whether its result is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    id: "look". says: what it does, for a sentence about its end: "Looking at the picture". where: "module:function" in
    `inspector.jobs.kinds`, called with a `Bench` and the job's arguments; imported by workers alone.
    nbytes: memory beyond what the worker holds that every job of the kind may take; more is asked for with
    `Bench.need`. seconds: after which it is ended. long: may take more than some seconds, so that a worker is kept
    free of these. kept: whether the result is worth keeping for the same question. behind: seconds for which others
    that come later are done first, for what stands below what its visitor waits for. goes_on: what was done when it was
    stopped is kept, and the next start goes on there.
    """

    id: str
    says: str
    where: str
    nbytes: int = 600 * MB
    seconds: float = 120.0
    long: bool = False
    kept: bool = True
    behind: float = 0.0
    goes_on: bool = False

    def work(self) -> Callable[..., Any]:
        """The function itself."""
        module, _, name = self.where.partition(":")
        found: Callable[..., Any] = getattr(import_module(f"inspector.jobs.kinds.{module}"), name)
        return found
