"""The server's end of the jobs: asks, waits, keeps the broker alive. Nothing here imports torch.

Equal questions are one job, whoever asks. What was answered is in a small memory here and on disk behind it.
"""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from inspector.errors import InspectorError
from inspector.jobs import endings
from inspector.jobs.bench import Bench
from inspector.jobs.job import Job
from inspector.jobs.kind import MB, Kind
from inspector.jobs.kinds.table import kind_named
from inspector.jobs.results import Results
from inspector.jobs.settings import Settings
from inspector.jobs.wire import Wire
from inspector.progress import Stopped

_LOG = logging.getLogger("inspector.jobs")
# Answers in memory: with workers the disk behind it has all of them, without there is nothing behind it.
_MEMORY_NBYTES, _MEMORY_NBYTES_ALONE = 24 * MB, 96 * MB
# A broker that ends so soon after its start is not started again for this job.
_ATTEMPTS = 2


class Running:
    """A job on its way. done, total, note: as last published. place: in the queue, 0 at work. expected: seconds until
    it begins, about. visitor: who asked first. readers: sessions that wait for it. seen: when somebody last asked."""

    def __init__(self, job: Job, kind: Kind, visitor: str) -> None:
        self.job = job
        self.kind = kind
        self.visitor = visitor
        self.done = 0
        self.total: int | None = None
        self.note = ""
        self.place = 0
        self.expected = 0.0
        self.begun = False
        self.stopped = False
        self.error: BaseException | None = None
        self.result: Any = None
        self.attempts = 1
        self.readers: set[str] = set()
        self.seen = time.monotonic()
        self.ended = threading.Event()
        self._stop: Callable[[], None] = _nothing

    def wait(self, seconds: float | None = None) -> bool:
        """Give it a moment; True when it has ended."""
        return self.ended.wait(seconds)

    def stop(self) -> None:
        """Ask it to end; it does within a second or is ended."""
        self._stop()


def _nothing() -> None:
    """There is nothing to stop yet."""


class Client:
    """settings: as the operator wants it; with 0 workers everything runs in threads of this process, but what must be
    apart."""

    # Whether a person's own code may run in this process: never in a server.
    runs_own_code = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.results = Results(settings.results, settings.results_nbytes)
        self._lock = threading.RLock()
        self._running: dict[str, Running] = {}
        self._numbers = itertools.count(1)
        self._by_number: dict[int, Running] = {}
        self._memory: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._most_nbytes = _MEMORY_NBYTES if settings.workers else _MEMORY_NBYTES_ALONE
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._here: Bench | None = None
        self._alone = threading.Lock()
        self._answers: dict[int, list[Any]] = {}
        self.closed = threading.Event()

    # Asking.

    def known(self, job: Job) -> tuple[bool, Any]:
        """(whether it was answered before, the answer)."""
        with self._lock:
            if job.key in self._memory:
                self._memory.move_to_end(job.key)
                return True, self._memory[job.key][0]
        data = self.results.read(job.key) if kind_named(job.kind).kept else None
        if data is None:
            return False, None
        try:
            found = pickle.loads(data)
        except Exception:  # noqa: BLE001 - of another version, or cut short by a full disk
            self.results.drop(job.key)
            return False, None
        self._remember(job, found, len(data))
        return True, found

    def ask(self, job: Job, *, visitor: str = "") -> Running:
        """Ask for it, or join those who wait for the same."""
        kind = kind_named(job.kind)
        found, result = self.known(job)
        if found:
            running = Running(job, kind, visitor)
            running.result = result
            running.ended.set()
            return running
        with self._lock:
            joined = self._running.get(job.key)
            if joined is None:
                joined = self._running[job.key] = Running(job, kind, visitor)
                self._send(joined, visitor)
            joined.seen = time.monotonic()
            return joined

    def forget(self) -> None:
        """Let go of the answers in memory; those on disk stay."""
        with self._lock:
            self._memory.clear()

    def running(self) -> list[Running]:
        """All that somebody waits for."""
        with self._lock:
            return list(self._running.values())

    def find(self, job: Job) -> Running | None:
        """The same question under way."""
        with self._lock:
            return self._running.get(job.key)

    def state(self, seconds: float = 5.0) -> dict[str, Any] | None:
        """What the broker says of itself; None where it says nothing in time, and where there is none."""
        if self.settings.workers == 0:
            return {"workers": 0, "busy": len(self.running()), "waiting": 0, "counts": {}, "pids": []}
        with self._lock:
            self._start()
            number = next(self._numbers)
            answer: list[Any] = []
            self._answers[number] = answer
        self._tell("state", number)
        until = time.monotonic() + seconds
        while not answer and time.monotonic() < until:
            time.sleep(0.02)
        self._answers.pop(number, None)
        return answer[0] if answer else None

    def say_visitors(self, count: int) -> None:
        """How many are there: what workers keep goes when nobody is."""
        if self._wire is not None:
            self._tell("visitors", count)

    def start(self) -> None:
        """The broker, before anybody asks."""
        if self.settings.workers:
            with self._lock:
                self._start()

    def close(self) -> None:
        """End the broker and its workers."""
        with self._lock:
            self.closed.set()
            process, self._process, self._wire = self._process, None, None
        if process is not None and process.stdin is not None:
            try:
                process.stdin.close()
                process.wait(3.0)
            except (OSError, subprocess.TimeoutExpired):
                process.kill()
            if process.stdout is not None:
                process.stdout.close()

    # The broker.

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None and self._wire is not None:
            return
        environment = dict(os.environ)
        # The process that workers are forked from is not told where packages are found (python/cpython #117378).
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inspector.jobs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._wire = Wire(self._process.stdout, self._process.stdin)
        self._wire.send(("settings", self.settings))
        threading.Thread(target=self._hear, args=(self._wire,), daemon=True, name="inspector-jobs").start()

    def _send(self, running: Running, visitor: str) -> None:
        job, number = running.job, next(self._numbers)
        arguments = pickle.dumps(job.arguments, protocol=pickle.HIGHEST_PROTOCOL)
        if self.settings.workers == 0:
            if job.apart and not self.runs_own_code:
                self._end(running, number, error=endings.no_worker(running.kind.says))
                return
            self._run_here(running, number, arguments)
            return
        self._start()
        self._by_number[number] = running
        running._stop = lambda: self._tell("stop", number)
        self._tell("ask", number, job.kind, job.key, arguments, visitor, job.near, job.apart)

    def _tell(self, *message: Any) -> None:
        wire = self._wire
        try:
            if wire is not None:
                wire.send(message)
        except (OSError, ValueError):
            return  # `_hear` finds its end and asks again.

    def _hear(self, wire: Wire) -> None:
        while True:
            message = wire.receive()
            if message is None:
                break
            what, number, *rest = message
            if what == "state":
                self._answers.get(number, []).append(rest[0])
                continue
            with self._lock:
                running = self._by_number.get(number)
            if running is not None:
                self._heard(running, number, what, rest)
        self._lost(wire)

    def _heard(self, running: Running, number: int, what: str, rest: list[Any]) -> None:
        if what == "place":
            running.place, running.expected = rest
        elif what == "begun":
            running.begun, running.place = True, 0
        elif what == "progress":
            running.done, running.total, running.note = rest
            running.place = 0
        elif what == "done":
            self._take(running, number, rest[0])
        elif what == "failed":
            self._end(running, number, error=rest[0])
        elif what == "stopped":
            running.stopped = True
            self._end(running, number)

    def _take(self, running: Running, number: int, data: bytes | None) -> None:
        if data is None:
            data = self.results.read(running.job.key)
            if not running.kind.kept:
                self.results.drop(running.job.key)
        try:
            if data is None:
                raise OSError("the result could not be kept: the disk may be full")
            result = pickle.loads(data)
        except Exception as error:  # noqa: BLE001 - the reader gets it
            _LOG.error("the result of %s cannot be read", running.kind.says, exc_info=error)
            self._end(running, number, error=endings.unkept(running.kind.says))
            return
        if running.kind.kept:
            self._remember(running.job, result, len(data))
        self._end(running, number, result=result)

    def _end(self, running: Running, number: int, *, result: Any = None, error: BaseException | None = None) -> None:
        with self._lock:
            self._by_number.pop(number, None)
            if self._running.get(running.job.key) is running:
                del self._running[running.job.key]
        running.result, running.error = result, error
        running.ended.set()

    def _lost(self, wire: Wire) -> None:
        """The broker ended: what it had is asked of the next one, once."""
        with self._lock:
            if self.closed.is_set() or wire is not self._wire:
                return
            _LOG.error("the broker of the workers ended; it is started again")
            self._wire = None
            left, self._by_number = self._by_number, {}
            for number, running in left.items():
                if running.attempts < _ATTEMPTS:
                    running.attempts += 1
                    self._send(running, running.visitor)
                else:
                    self._end(running, number, error=endings.lost(running.kind.says))
            self._start()

    # Without workers.

    def _run_here(self, running: Running, number: int, arguments: bytes) -> None:
        from inspector.jobs.worker import Order, work_here

        order = Order(number=number, kind=running.kind.id, key=running.job.key, arguments=arguments, nbytes=0)
        stop = threading.Event()
        running._stop = stop.set

        def work() -> None:
            desk = _Here(running, stop)
            try:
                with self._alone:
                    if self._here is None:
                        self._here = Bench(self.settings, desk)
                    self._here._desk = desk
                    running.begun = True
                    result = work_here(order, self._here)
                if running.kind.kept:
                    self._remember(running.job, result, len(pickle.dumps(result)))
                self._end(running, number, result=result)
            except Stopped:
                running.stopped = True
                self._end(running, number)
            except InspectorError as error:
                self._end(running, number, error=error)
            except Exception as error:  # noqa: BLE001 - a thread has nobody above it; the page raises it again
                _LOG.error("%s failed", running.kind.says, exc_info=error)
                self._end(running, number, error=error)

        threading.Thread(target=work, daemon=True, name="inspector-job").start()

    def _remember(self, job: Job, result: Any, nbytes: int) -> None:
        with self._lock:
            self._memory[job.key] = (result, nbytes)
            self._memory.move_to_end(job.key)
            while len(self._memory) > 1 and sum(size for _, size in self._memory.values()) > self._most_nbytes:
                self._memory.popitem(last=False)


class _Here:
    """The desk of a job in this process: all memory is its own."""

    def __init__(self, running: Running, stop: threading.Event) -> None:
        self._running = running
        self._stop = stop

    def publish(self, done: int, total: int | None, note: str) -> None:
        if self._stop.is_set():
            raise Stopped
        self._running.done, self._running.total, self._running.note = done, total, note

    def need(self, nbytes: int, instead: str) -> None:
        return
