"""One worker process: a job at a time, behind a wall of memory, until the broker is gone."""

from __future__ import annotations

import logging
import os
import pickle
import queue
import re
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from inspector.errors import InspectorError
from inspector.jobs import endings, walls
from inspector.jobs.bench import Bench
from inspector.jobs.kind import Kind
from inspector.jobs.kinds.table import kind_named
from inspector.jobs.results import Results
from inspector.jobs.settings import Settings
from inspector.progress import Stopped

_LOG = logging.getLogger("inspector.jobs")
_PUBLISH_SECONDS = 0.1
# What torch and the allocators below it say when they get no more.
_NO_MEMORY = re.compile(r"can.t allocate memory|not enough memory|out of memory|bad_alloc|can.t start new thread", re.I)
# Larger ones are read from their file.
INLINE_NBYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A job as it goes to a worker. arguments: pickled, since the broker has no use for them."""

    number: int
    kind: str
    key: str
    arguments: bytes
    nbytes: int


class _Pipe:
    """The desk of a worker: what the broker says is heard by a thread, so that a job can be stopped in its middle."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answers: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.says = ""
        self._last = 0.0

    def listen(self) -> None:
        while True:
            try:
                what, *rest = self._connection.recv()
            except (EOFError, OSError):
                os._exit(1)  # Nobody waits for anything any more.
            if what == "order":
                self.orders.put(rest[0])
            elif what == "stop":
                self._stop.set()
                self._answers.put(("stopped",))
            else:
                self._answers.put((what, *rest))

    def begin(self, kind: Kind) -> None:
        self.says, self._last = kind.says, 0.0
        self._stop.clear()
        while not self._answers.empty():
            self._answers.get()

    def send(self, *message: Any) -> None:
        with self._lock:
            self._connection.send(message)

    def publish(self, done: int, total: int | None, note: str) -> None:
        if self._stop.is_set():
            raise Stopped
        now = time.monotonic()
        if now - self._last >= _PUBLISH_SECONDS:
            self._last = now
            self.send("progress", done, total, note)

    def need(self, nbytes: int, instead: str) -> None:
        if self._stop.is_set():
            raise Stopped
        self.send("need", nbytes)
        what, *rest = self._answers.get()
        if what == "stopped":
            raise Stopped
        if what == "refused":
            most, needed = rest
            raise endings.cannot_fit(self.says, needed, most, instead)
        walls.raise_wall(rest[0])


def main(connection: Connection, settings: Settings) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pipe = _Pipe(connection)
    bench = Bench(settings, pipe)
    results = Results(settings.results, settings.results_nbytes)
    threading.Thread(target=pipe.listen, daemon=True, name="broker").start()
    _prepare(settings)
    pipe.send("ready", walls.anonymous_nbytes(os.getpid()))
    while True:
        order = pipe.orders.get()
        ended = _work(order, pipe, bench, results)
        walls.drop_wall()
        walls.give_back()
        pipe.send(*ended, bench.tags)
        if ended[0] == "broken":
            os._exit(1)


def _prepare(settings: Settings) -> None:
    import torch

    torch.set_num_threads(settings.threads)


def _work(order: Order, pipe: _Pipe, bench: Bench, results: Results) -> tuple[Any, ...]:
    """What is sent when it has ended: ("done", data or None), ("failed", error), ("stopped",), or ("broken", error)
    where this process should do nothing more."""
    kind = kind_named(order.kind)
    pipe.begin(kind)
    try:
        walls.raise_wall(order.nbytes)
        made = kind.work()(bench, *pickle.loads(order.arguments))
        data = pickle.dumps(made, protocol=pickle.HIGHEST_PROTOCOL)
        walls.drop_wall()
        inline = len(data) <= INLINE_NBYTES
        if kind.kept or not inline:
            results.write(order.key, data)
        return "done", (data if inline else None)
    except Stopped:
        return ("stopped",)
    except InspectorError as error:
        return "failed", error
    except MemoryError:
        return "broken", endings.too_much(kind.says, order.nbytes)
    except Exception as error:  # noqa: BLE001 - whatever a job meets, the worker answers
        if isinstance(error, RuntimeError | OSError) and _NO_MEMORY.search(str(error)):
            return "broken", endings.too_much(kind.says, order.nbytes)
        _LOG.error("%s failed", kind.says, exc_info=error)
        return "failed", _told(error)


def _told(error: Exception) -> Exception:
    """The error as the server can raise it: itself where it can be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - of whatever class
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def work_here(order: Order, bench: Bench) -> Any:
    """The same in the calling process, without walls; raises what the work raises."""
    return kind_named(order.kind).work()(bench, *pickle.loads(order.arguments))
