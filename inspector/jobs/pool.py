"""The worker processes as the broker sees them: born from one that has torch in memory, watched, ended."""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from inspector.jobs import walls
from inspector.jobs.settings import Settings
from inspector.jobs.worker import main

PRELOAD = "inspector.jobs.preload"


@dataclass(eq=False)
class Worker:
    """base: what it held when it was born. held: beyond that, as last seen. tags: files that it keeps something of.
    task: what it works on, None when idle. since: when it became so. apart: the one word of jobs that it does, "" for
    those of everybody."""

    process: BaseProcess
    connection: Connection
    ready: bool = False
    base: int = 0
    held: int = 0
    tags: frozenset[str] = frozenset()
    task: Any = None
    since: float = field(default_factory=time.monotonic)
    ended: bool = False
    apart: str = ""

    def look(self) -> int:
        """What it holds now beyond its birth."""
        self.held = max(0, walls.anonymous_nbytes(self.process.pid or 0) - self.base)
        return self.held

    def send(self, *message: Any) -> None:
        """Silent when it is gone: its end is heard elsewhere."""
        try:
            self.connection.send(message)
        except (OSError, ValueError):
            return

    def kill(self) -> None:
        """At once; its end is heard as any other."""
        self.process.kill()


class Pool:
    """Workers and what they say: ("worker", worker, message) in `events`, message None when it ended."""

    def __init__(self, settings: Settings, events: queue.SimpleQueue[tuple[Any, ...]]) -> None:
        self._settings = settings
        self._events = events
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload([PRELOAD])
        self.workers: list[Worker] = []

    def start(self, apart: str = "") -> Worker:
        """A further one, which says when it is ready."""
        ours, theirs = self._context.Pipe()
        process: BaseProcess = self._context.Process(  # type: ignore[attr-defined]
            target=main, args=(theirs, self._settings), daemon=True
        )
        process.start()
        theirs.close()
        worker = Worker(process=process, connection=ours, apart=apart)
        self.workers.append(worker)
        threading.Thread(target=self._hear, args=(worker,), daemon=True, name="worker").start()
        return worker

    def remove(self, worker: Worker) -> int | None:
        """It ended: its exit code, negative for a signal."""
        if worker in self.workers:
            self.workers.remove(worker)
        worker.ended = True
        worker.connection.close()
        worker.process.join(2.0)
        return worker.process.exitcode

    def retire(self, worker: Worker) -> None:
        """An idle one whose memory is wanted; the next is born in a tenth of a second."""
        self.workers.remove(worker)
        worker.ended = True
        worker.kill()

    def _hear(self, worker: Worker) -> None:
        while True:
            try:
                message = worker.connection.recv()
            except (EOFError, OSError, ValueError):
                self._events.put(("worker", worker, None))
                return
            self._events.put(("worker", worker, message))
