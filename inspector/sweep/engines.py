"""Where the pieces of a sweep run. An engine is a standard Executor, how many workers it has, and what is done when it
breaks; scheduling, heartbeats and retries are the executor's own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from inspector.errors import UsageError
from inspector.progress import Stopped

Result = TypeVar("Result")

# Batches under way for each worker: while one is worked on, the next is there.
_EACH = 4


class Engine(Protocol):
    """workers: that run side by side. window: batches under way. most: pieces that travel together at the most."""

    workers: int
    window: int
    most: int

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        """As an Executor does."""
        ...

    def renew(self) -> None:
        """Go on after the executor broke (BrokenExecutor): all that was under way is lost."""
        ...

    def check(self) -> None:
        """Raise ReadError where nothing that is submitted can end well any more."""
        ...

    def close(self, *, stop: bool) -> None:
        """stop: whoever still works is ended where that is possible, else what runs is waited for."""
        ...


class Inline:
    """Here, one piece at a time, when it is asked for. What ends its process ends this one; work that asks whether to
    go on (`inspector.progress`) is answered."""

    workers = window = most = 1

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        future: Future[Result] = Future()
        try:
            future.set_result(function(*args))
        except Stopped:
            raise  # whoever asked for it asked not to go on: no failure of this piece
        except Exception as error:  # noqa: BLE001 - told by the future, as any executor does
            future.set_exception(error)
        return future

    def renew(self) -> None:
        return None

    def check(self) -> None:
        return None

    def close(self, *, stop: bool) -> None:
        return None


class Threads:
    """Threads of this process, for work that NumPy does, or that waits for a network."""

    most = 100

    def __init__(self, workers: int) -> None:
        self.workers, self.window = workers, _EACH * workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="inspector-sweep")

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        return self._pool.submit(function, *args)

    def renew(self) -> None:
        return None

    def check(self) -> None:
        return None

    def close(self, *, stop: bool) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class Processes:
    """Processes of this machine; spawned, not forked: the caller may have threads."""

    most = 100

    def __init__(self, workers: int) -> None:
        self.workers, self.window = workers, _EACH * workers
        self._others = set(multiprocessing.active_children())
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_leave_ending_to_caller,
        )

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        return self._pool.submit(function, *args)

    def renew(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._new()

    def check(self) -> None:
        return None

    def close(self, *, stop: bool) -> None:
        self._pool.shutdown(wait=not stop, cancel_futures=True)
        # Stopped, by a signal perhaps: a file that takes minutes must not keep the program from ending.
        for child in set(multiprocessing.active_children()) - self._others if stop else ():
            child.terminate()


class Given:
    """Somebody's own executor: a cluster's, or any other that keeps to the standard interface. It is not closed."""

    most = 100

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self.workers = max(1, workers)
        self.window = _EACH * self.workers

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        return self._executor.submit(function, *args)

    def renew(self) -> None:
        return None

    def check(self) -> None:
        return None

    def close(self, *, stop: bool) -> None:
        return None


def _leave_ending_to_caller() -> None:
    """Ctrl-C goes to all processes of a terminal; the caller ends these."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def engine_of(executor: str = "", jobs: int = 1) -> Iterator[Engine]:
    """The engine of a name, closed at the end: "" or "processes" (`jobs` of them; one job runs here), "threads", or the
    address of a Dask scheduler, `tcp://host:8786` or `tls://...`.

    Raises UsageError for other names, MissingLibrary and ReadError for a cluster that cannot be reached.
    """
    if executor.startswith(("tcp://", "tls://", "ucx://", "ws://", "wss://")):
        from inspector.sweep.cluster import cluster_engine

        with cluster_engine(executor) as cluster:
            yield cluster
        return
    jobs = jobs or os.cpu_count() or 1
    engine: Engine
    if executor == "threads":
        engine = Threads(jobs)
    elif executor in ("", "processes"):
        engine = Processes(jobs) if jobs > 1 or executor else Inline()
    else:
        raise UsageError(
            f"There is no executor {executor!r}.",
            hint='Name "processes", "threads", or the address of a Dask scheduler: tcp://host:8786.',
        )
    whole = False
    try:
        yield engine
        whole = True
    finally:
        engine.close(stop=not whole)
