"""Work for sweeps under test: functions that other processes can import."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from inspector.sweep.piece import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """Of numbers, with their cubes beside. log: a folder in which each call leaves a file, "" for none. fatal: numbers
    that end their process; failing: that raise; passing: whose results no store may keep."""

    log: str = ""
    fatal: tuple[int, ...] = ()
    failing: tuple[int, ...] = ()
    passing: tuple[int, ...] = ()
    seconds: float = 0.0

    def __call__(self, item: int) -> Outcome:
        if self.log:
            (Path(self.log) / f"{item}-{os.getpid()}-{time.monotonic_ns()}").touch()
        if item in self.fatal:
            os._exit(9)
        if item in self.failing:
            raise ValueError(f"{item} is not liked")
        time.sleep(self.seconds)
        return Outcome(data=b"%d" % (item * item), kept=item not in self.passing, aside=b"%d" % item**3)


def blocked_signals() -> set[int]:
    """Those that do not reach whoever is asked."""
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def lost(item: int, why: str) -> Outcome:
    return Outcome(data=f"lost {item}: {why}".encode(), kept=False)


def calls(log: Path) -> list[int]:
    """The items that were worked on, in no order, each as often as it was."""
    return sorted(int(path.name.partition("-")[0]) for path in log.iterdir())
