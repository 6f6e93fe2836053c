"""Bytes done so far, told to `progress` by the thread that asked, whoever reads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from numpy.typing import NDArray

from inspector.progress import Progress

_REPORT_EVERY_SECONDS = 0.1

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class _Ended(Exception):
    """The one who asked has stopped; what is being read is let go."""


class Meter:
    """total: bytes that will be read. `progress` is called before each item and every tenth of a second."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = 0
        self._note = ""
        self._told = 0.0
        self._lock = threading.Lock()
        self._caller = threading.get_ident()
        self._ended = False

    @property
    def done(self) -> int:
        """Bytes that were read."""
        return self._done

    def begin(self, note: str) -> None:
        """What is read now."""
        with self._lock:
            self._note = note
        if threading.get_ident() == self._caller:
            self._tell()

    def passed(self, nbytes: int) -> None:
        """So many bytes were read in one go."""
        with self._lock:
            self._done += nbytes
        if self._ended:
            raise _Ended
        if threading.get_ident() == self._caller and time.monotonic() - self._told > _REPORT_EVERY_SECONDS:
            self._tell()

    def watching(self, chunks: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """The same chunks, counted as they are done with."""
        for chunk in chunks:
            yield chunk
            self.passed(chunk.nbytes)

    def over(self, work: Callable[[Item], Answer], items: Iterable[Item], workers: int) -> list[Answer]:
        """The answer for each item, in their order. Raises what `work` or progress raises."""
        if workers <= 1:
            return [work(item) for item in items]
        waiting = deque(enumerate(items))
        answers: dict[int, Answer] = {}

        def take() -> None:
            """The next item until none is left: a task for each of twenty thousand would cost more than small ones."""
            while not self._ended:
                try:
                    place, item = waiting.popleft()
                except IndexError:
                    return
                answers[place] = work(item)

        count = len(waiting)
        with ThreadPoolExecutor(max_workers=workers) as pool:
            tasks = [pool.submit(take) for _ in range(min(workers, count))]
            try:
                while wait(tasks, timeout=_REPORT_EVERY_SECONDS).not_done:
                    self._tell()
                for task in tasks:
                    task.result()
            finally:
                self._ended = True
        return [answers[place] for place in range(count)]

    def end(self) -> None:
        """All of it is done, also what could not be read."""
        self._done, self._note = self._total, "done"
        self._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        with self._lock:
            done, note = min(self._done, self._total), self._note
        self._progress(done, self._total, note)
