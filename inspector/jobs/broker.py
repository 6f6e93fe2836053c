"""The broker: which job runs where and when. It imports no torch, and it ends with the server that started it.

A queue in order of arrival, in which a table of small maps lets what comes a little later go first, a visitor's long
job waits for the same visitor's other one, and one worker stays free of long jobs; a job goes to the worker that has
its model, and waits a little where that one is busy; a budget of memory, from which a job has its allowance and asks
for more by its own estimate; a look at every working process five times a second, which ends what grew over its
allowance or its time.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from bisect import insort
from collections import Counter
from pathlib import Path
from typing import Any

from inspector.jobs import endings
from inspector.jobs.kind import MB
from inspector.jobs.kinds.table import kind_named
from inspector.jobs.pool import Pool, Worker
from inspector.jobs.results import Results
from inspector.jobs.settings import Settings
from inspector.jobs.task import Durations, Task
from inspector.jobs.wire import Wire
from inspector.jobs.worker import Order

_LOG = logging.getLogger("inspector.jobs")
_LOOK_SECONDS = 0.2
# A job that was told to stop and does not hear it.
_STOP_SECONDS = 1.0
# Over the allowance by so much: what is asked for is an estimate.
_OVER, _OVER_NBYTES = 1.25, 128 * MB
# As long as a model is built and run in.
_NEAR_SECONDS = 1.5
# A worker that keeps more than this goes when nobody is there, and when nobody asked anything of it for long.
_KEEPS_NBYTES = 60 * MB
_IDLE_SECONDS = 900.0
_SWEEP_EVERY = 64


class Broker:
    """wire: to the server. One thread runs it; others only put events into its queue."""

    def __init__(self, settings: Settings, wire: Wire) -> None:
        self._settings = settings
        self._wire = wire
        self._events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._pool = Pool(settings, self._events)
        self._queue: list[Task] = []
        self._durations = Durations()
        self._counts: Counter[str] = Counter()
        self._results = Results(settings.results, settings.results_nbytes)
        self._visitors, self._alone_since = 0, time.monotonic()
        self._failed_births = 0

    def run(self) -> None:
        """Until the server is gone."""
        self._results.clear_rests()
        threading.Thread(target=self._hear_server, daemon=True, name="server").start()
        self._pool.start()
        looked = 0.0
        while True:
            try:
                event = self._events.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                event = ()
            if event and event[0] == "server":
                if event[1] is None:
                    break
                self._from_server(*event[1])
            elif event:
                self._from_worker(event[1], event[2])
            if time.monotonic() - looked >= _LOOK_SECONDS:
                looked = time.monotonic()
                self._look()
            self._grant()
            self._start()
            self._tell_places()
        for worker in self._pool.workers:
            worker.kill()

    def _hear_server(self) -> None:
        while True:
            message = self._wire.receive()
            self._events.put(("server", message))
            if message is None:
                return

    # What the server says.

    def _from_server(self, what: str, *rest: Any) -> None:
        if what == "ask":
            number, kind, key, arguments, visitor, near, apart = rest
            task = Task(
                number=number,
                kind=kind_named(kind),
                key=key,
                arguments=arguments,
                visitor=visitor,
                near=near,
                apart=apart,
            )
            self._counts["asked"] += 1
            insort(self._queue, task, key=lambda one: one.turn)
        elif what == "stop":
            self._stop(rest[0])
        elif what == "visitors":
            (count,) = rest
            if count or self._visitors:
                self._alone_since = time.monotonic()
            self._visitors = count
        elif what == "state":
            self._say("state", rest[0], self._state())

    def _stop(self, number: int) -> None:
        for task in self._queue:
            if task.number == number:
                self._queue.remove(task)
                self._say("stopped", number)
                return
        for worker in self._busy():
            if worker.task.number == number and worker.task.stopping is None:
                worker.task.stopping = time.monotonic()
                worker.send("stop")

    def _state(self) -> dict[str, Any]:
        workers = self._pool.workers
        return {
            "workers": len(workers),
            "busy": len(self._busy()),
            "waiting": len(self._queue),
            "held_nbytes": sum(worker.look() for worker in workers),
            "memory_nbytes": self._settings.memory_nbytes,
            "pids": [worker.process.pid for worker in workers],
            "counts": dict(self._counts),
        }

    # What workers say.

    def _from_worker(self, worker: Worker, message: tuple[Any, ...] | None) -> None:
        if message is None:
            self._ended(worker)
            return
        what, *rest = message
        task: Task | None = worker.task
        if what == "ready":
            worker.ready, worker.base = True, rest[0]
            self._failed_births = 0
        elif task is None:
            return
        elif what == "progress":
            self._say("progress", task.number, *rest)
        elif what == "need":
            task.wants = rest[0]
        else:
            *ended, worker.tags = rest
            self._finish(worker, task, what, *ended)

    def _finish(self, worker: Worker, task: Task, what: str, *rest: Any) -> None:
        worker.task, worker.since = None, time.monotonic()
        worker.look()
        self._durations.add(task.kind, time.monotonic() - task.begun)
        self._counts[what] += 1
        if what == "broken":
            # Where an allocation was refused, threads and libraries may be in any state.
            self._say("failed", task.number, rest[0])
            self._pool.retire(worker)
        else:
            self._say(what, task.number, *rest)
        if self._counts["done"] % _SWEEP_EVERY == 0:
            threading.Thread(target=self._results.sweep, daemon=True).start()

    def _ended(self, worker: Worker) -> None:
        if worker.ended:
            return
        code = self._pool.remove(worker)
        task: Task | None = worker.task
        if task is not None:
            if task.stopping is not None and task.fault is None:
                self._counts["stopped"] += 1
                self._say("stopped", task.number)
            elif task.fault is _REQUEUED:
                task.fault = None
                self._queue.insert(0, task)
            else:
                self._counts["died"] += 1
                self._say("failed", task.number, task.fault or endings.died(task.kind.says, code))
        elif not worker.ready:
            self._failed_births += 1
            _LOG.error("a worker ended before it was ready (exit code %s)", code)

    # Memory, time, and who goes.

    def _look(self) -> None:
        now = time.monotonic()
        for worker in self._busy():
            task: Task = worker.task
            grown = worker.look() - task.before
            if task.fault is not None:
                worker.kill()  # It was killed before and is still there.
            elif grown > _OVER * task.allowance + _OVER_NBYTES:
                task.fault = endings.too_much(task.kind.says, task.allowance)
                worker.kill()
            elif not task.wants and now - task.begun > task.kind.seconds:
                task.fault = endings.too_long(task.kind.says, task.kind.seconds)
                worker.kill()
            elif task.stopping is not None and now - task.stopping > _STOP_SECONDS:
                worker.kill()
        alone = not self._visitors and now - self._alone_since > self._settings.alone_seconds
        for worker in self._idle():
            if worker.held > _KEEPS_NBYTES and now - worker.since > (
                self._settings.alone_seconds if alone else _IDLE_SECONDS
            ):
                self._pool.retire(worker)

    def _taken(self, but: Worker | None = None) -> int:
        """Memory that is spoken for. A job that waits for memory takes no more than it holds."""
        total = 0
        for worker in self._pool.workers:
            if worker is but:
                continue
            task: Task | None = worker.task
            promised = task.before + task.allowance if task is not None and not task.wants else 0
            total += max(worker.held, promised)
        return total

    def _make_room(self, nbytes: int, but: Worker) -> bool:
        """Whether the others leave so much, if need be without what idle ones keep."""
        for worker in sorted(self._idle(), key=lambda one: -one.held):
            if self._taken(but) + nbytes <= self._settings.memory_nbytes or worker.held <= _KEEPS_NBYTES:
                break
            if worker is not but:
                self._pool.retire(worker)
        return self._taken(but) + nbytes <= self._settings.memory_nbytes

    def _grant(self) -> None:
        """Memory to those that wait for it, the first come first."""
        waiting = sorted((w for w in self._busy() if w.task.wants), key=lambda one: one.task.asked)
        for worker in waiting:
            task: Task = worker.task
            needed = task.allowance + task.wants
            if needed > self._settings.memory_nbytes:
                worker.send("refused", self._settings.memory_nbytes, needed)
                task.wants = 0
            elif self._make_room(max(0, task.before - _KEEPS_NBYTES) + needed, worker):
                worker.send("granted", needed)
                task.allowance, task.wants, task.begun = needed, 0, time.monotonic()
            else:
                if len(waiting) == len(self._busy()):
                    # They wait for each other, or one for what its own worker keeps: the last one begins again
                    # in another worker, and what this one held is free.
                    last: Worker = waiting[-1]
                    last.task.fault = _REQUEUED
                    last.kill()
                return

    def _start(self) -> None:
        """Those of the queue that can run now."""
        for task in list(self._queue):
            if (task.kind.long and self._must_wait(task)) or self._waits_for_model(task):
                continue
            worker = self._choose(task)
            if worker is None and task.apart:
                continue  # Its own worker is busy or on its way: nobody else waits for that.
            if worker is None:
                return
            if not self._make_room(worker.held + task.kind.nbytes, worker):
                if not self._busy() and task.kind.nbytes > self._settings.memory_nbytes:
                    self._queue.remove(task)
                    most = self._settings.memory_nbytes
                    self._say("failed", task.number, endings.cannot_fit(task.kind.says, task.kind.nbytes, most))
                    continue
                if self._busy() or worker.held <= _KEEPS_NBYTES:
                    return
                self._pool.retire(worker)
                return
            self._queue.remove(task)
            task.allowance, task.before, task.wants = task.kind.nbytes, worker.look(), 0
            task.begun = time.monotonic()
            worker.task = task
            worker.send(
                "order",
                Order(
                    number=task.number,
                    kind=task.kind.id,
                    key=task.key,
                    arguments=task.arguments,
                    nbytes=task.allowance,
                ),
            )
            self._say("begun", task.number)

    def _must_wait(self, task: Task) -> bool:
        """A long one: for the visitor's other long one, and while only one worker is free of them."""
        running = [worker.task for worker in self._busy() if worker.task.kind.long]
        if any(other.visitor == task.visitor for other in running if task.visitor):
            return True
        return len(running) >= max(1, self._settings.workers - 1)

    def _waits_for_model(self, task: Task) -> bool:
        """Whether the only workers that know its file are busy and soon free: another would build the model as well,
        and keep it a second time."""
        if not task.near or time.monotonic() - task.asked > _NEAR_SECONDS:
            return False
        knowing = [worker for worker in self._pool.workers if worker.apart == task.apart and _knows(worker, task.near)]
        return bool(knowing) and all(worker.task is not None and not worker.task.kind.long for worker in knowing)

    def _choose(self, task: Task) -> Worker | None:
        """An idle worker that keeps something of the file, else any, else a new one on its way."""
        alike = [worker for worker in self._pool.workers if worker.apart == task.apart]
        idle = [worker for worker in alike if worker.task is None and worker.ready]
        near = [worker for worker in idle if task.near in worker.tags]
        if near:
            return near[0]
        if idle:
            # One that keeps nothing, so that nothing useful is pushed out.
            return min(idle, key=lambda one: (len(one.tags), one.held))
        on_their_way = [worker for worker in alike if worker.task is None and not worker.ready]
        if not on_their_way and self._may_start(task, len(alike)):
            if self._failed_births >= 3:
                self._queue.remove(task)
                self._say("failed", task.number, endings.lost(task.kind.says))
                return None
            self._pool.start(task.apart)
        return None

    def _may_start(self, task: Task, alike: int) -> bool:
        """Whether there is room for one more of its kind. What runs a person's code comes beside the others, one at a
        time: what ran other code goes first."""
        if not task.apart:
            return alike < self._settings.workers
        if next(one for one in self._queue if one.apart).apart != task.apart:
            return False  # Else two that wait would end each other's worker before it is born.
        others = [worker for worker in self._pool.workers if worker.apart and worker.apart != task.apart]
        for worker in others:
            if worker.task is None:
                self._pool.retire(worker)
        return alike == 0 and all(worker.task is None for worker in others)

    def _tell_places(self) -> None:
        """To those that wait: how many are before them, and for how long, about."""
        now = time.monotonic()
        ahead = sum(
            max(0.0, self._durations.of(w.task.kind) - (now - w.task.begun)) for w in self._busy() if not w.task.wants
        )
        waiting = [worker.task for worker in self._busy() if worker.task.wants] + self._queue
        for place, task in enumerate(waiting, start=1):
            if task.place != place:
                task.place = place
                self._say("place", task.number, place, ahead / max(1, self._settings.workers))
            ahead += self._durations.of(task.kind)

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._pool.workers if worker.task is not None]

    def _idle(self) -> list[Worker]:
        return [worker for worker in self._pool.workers if worker.task is None]

    def _say(self, *message: Any) -> None:
        try:
            self._wire.send(message)
        except (OSError, ValueError):
            self._events.put(("server", None))


def _knows(worker: Worker, near: str) -> bool:
    task: Task | None = worker.task
    return near in worker.tags or (task is not None and task.near == near)


# Not an ending: it begins again when there is room.
_REQUEUED = Exception("begins again")


def main() -> None:
    """`python -m inspector.jobs`: settings come as the first message."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    # What workers print must not get between messages.
    speaks = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    wire = Wire(os.fdopen(os.dup(0), "rb"), speaks)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    first = wire.receive()
    if first is not None:
        Broker(first[1], wire).run()
    os._exit(0)  # Threads that still wait for workers are not waited for.
