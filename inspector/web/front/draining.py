"""SIGTERM: nothing new is taken, what is under way may end, then the server ends and cleans up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_LOOK_SECONDS = 0.1


class Draining:
    """Where this server stands on its way to its end. Used on the event loop alone."""

    def __init__(self) -> None:
        self.has_begun = False
        # Whether the time for what is under way has passed, too.
        self.is_over = False
        self._under_way: set[asyncio.Timeout] = set()
        # Anything else that may end first: each says how many there are.
        self.waits_for: list[Callable[[], int]] = []

    @contextmanager
    def transfer(self, ends: asyncio.Timeout) -> Iterator[None]:
        """Around an upload or download that may end first. ends: what cuts it when the time has passed."""
        self._under_way.add(ends)
        try:
            yield
        finally:
            self._under_way.discard(ends)

    @property
    def under_way(self) -> int:
        """Transfers and whatever else is waited for."""
        return len(self._under_way) + sum(count() for count in self.waits_for)

    async def drain(self, seconds: float) -> None:
        """Until nothing is under way, or so long; what is left then is cut."""
        self.has_begun = True
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.under_way and loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)
        self.is_over = True
        for ends in self._under_way:
            ends.reschedule(loop.time())
        # So that those that were cut can say so.
        await asyncio.sleep(_LOOK_SECONDS if self._under_way else 0)


def drain_on_sigterm(draining: Draining, seconds: float) -> Callable[[], None]:
    """From here on SIGTERM drains before the server's own handler ends it; a second one ends it at once.

    Gives back what restores the handler. To be called on the main thread, with the loop running; elsewhere there are no
    signals, and nothing is done.
    """
    try:
        before = signal.getsignal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        waiting: list[asyncio.Task[None]] = []

        async def drain_and_end(number: int, frame: FrameType | None) -> None:
            await draining.drain(seconds)
            _call(before, number, frame)

        def handle(number: int, frame: FrameType | None) -> None:
            if draining.has_begun or not callable(before):
                _call(before, number, frame)
                return
            draining.has_begun = True
            loop.call_soon_threadsafe(lambda: waiting.append(loop.create_task(drain_and_end(number, frame))))

        signal.signal(signal.SIGTERM, handle)
    except ValueError:  # not the main thread
        return lambda: None
    return lambda: _restore(before)


def _restore(before: object) -> None:
    if callable(before) or isinstance(before, signal.Handlers):
        signal.signal(signal.SIGTERM, before)


def _call(before: object, number: int, frame: FrameType | None) -> None:
    if callable(before):
        before(number, frame)
    else:
        raise SystemExit(128 + number)


# Of this process.
draining = Draining()
