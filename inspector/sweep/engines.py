"""Where the pieces of a sweep run. An engine is a standard Executor, how many workers it has, and what is done when it
breaks; scheduling, heartbeats and retries are the executor's own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from inspector.errors import UsageError
from inspector.progress import Stopped

Result = TypeVar("Result")

# Batches under way for each worker: while one is worked on, the next is there.
_EACH = 4
# What ends a program; Windows knows fewer.
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Engine(Protocol):
    """workers: that run side by side. window: batches under way. most: pieces that travel together at the most."""

    workers: int
    window: int
    most: int

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        """As an Executor does."""
        ...

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """None of these is begun any more, at the latest once this is closed."""
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

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        return None

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

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        _cancel_each(futures)

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
        self._begun = False

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_leave_ending_to_caller,
        )

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        if self._begun:
            return self._pool.submit(function, *args)
        self._begun = True
        with _signals_held():
            return self._pool.submit(function, *args)

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        # Left to the pool's end. A pool whose processes end fails every future that it still has, and one that somebody
        # else cancelled makes its thread fail instead (CPython before 3.14).
        return None

    def renew(self) -> None:
        self._begun = False
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._new()

    def check(self) -> None:
        return None

    def close(self, *, stop: bool) -> None:
        # Stopped, by a signal perhaps: a file that takes minutes must not keep the program from ending.
        for child in set(multiprocessing.active_children()) - self._others if stop else ():
            child.terminate()
        # Waited for also then: what the pool's own thread still does would meet what the interpreter's end has closed.
        self._pool.shutdown(wait=True, cancel_futures=True)


class Given:
    """Somebody's own executor: a cluster's, or any other that keeps to the standard interface. It is not closed."""

    most = 100

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self.workers = max(1, workers)
        self.window = _EACH * self.workers

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        return self._executor.submit(function, *args)

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        _cancel_each(futures)

    def renew(self) -> None:
        return None

    def check(self) -> None:
        return None

    def close(self, *, stop: bool) -> None:
        return None


def _cancel_each(futures: Iterable[Future[Any]]) -> None:
    """What has not begun does not."""
    for future in futures:
        future.cancel()


def _leave_ending_to_caller() -> None:
    """Ctrl-C goes to all processes of a terminal; the caller ends these."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Around the start of processes: a signal that ends this one is heeded behind it. A process of which only half was
    started would print that it cannot go on, and nobody would know to end it; nor does a Ctrl-C reach one that is only
    about to leave it to its caller."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Not in a browser, where a scan of a folder runs in one thread.
    from multiprocessing import resource_tracker

    # It changes the mask itself, where it has to start a process of its own.
    resource_tracker.ensure_running()
    came: list[int] = []
    heeded = {number: handler for number in _ENDING if callable(handler := signal.getsignal(number))}
    for number in heeded:
        signal.signal(number, lambda number, _: came.append(number))
    # A mask is handed on to who is started.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in heeded.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)


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
