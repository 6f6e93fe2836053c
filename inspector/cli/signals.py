"""Signals that end the program, as exceptions. Imports next to nothing: they are heeded before the commands load."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# As shells say it: 128 and the signal's number.
STOPPED = 130
_SIGNALLED = 128
# `timeout` sends its signal twice; the second one must not cut the cleaning short.
_SECONDS_APART = 5.0


class Signalled(KeyboardInterrupt):
    """A signal that ends the program, as an exception: every `finally` runs, so nothing half written stays."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def code_of(interrupt: KeyboardInterrupt) -> int:
    """128 + N for signal N, 130 for Ctrl-C."""
    return _SIGNALLED + interrupt.number if isinstance(interrupt, Signalled) else STOPPED


@contextmanager
def signals_raised() -> Iterator[None]:
    """SIGTERM and SIGHUP end what runs inside as Ctrl-C does. What is ignored (nohup) stays so."""
    last = -_SECONDS_APART

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS_APART:
            last = now
            raise Signalled(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
