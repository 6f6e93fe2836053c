"""Long work beside the page: a worker thread that publishes progress and can be stopped.

The worker makes no Streamlit calls. A fragment polls it, so that clicks elsewhere neither stop nor repeat the work;
results live in one bounded table for the whole server, keyed by what was computed from what.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import streamlit as st

from inspector.errors import InspectorError
from inspector.progress import Progress, Stopped
from inspector.units import human_share
from inspector.web import gc_freeze as garbage

_LOG = logging.getLogger("inspector.web")
_KEPT = 24

T = TypeVar("T")


class Job(Generic[T]):
    """One piece of work. done, total, note: as last published. result, error: when it has ended."""

    def __init__(self, work: Callable[[Progress], T]) -> None:
        self._work = work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="inspector-job")
        self.done = 0
        self.total: int | None = None
        self.note = ""
        self.result: T | None = None
        self.error: Exception | None = None
        self.stopped = False

    def start(self) -> Job[T]:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ask it to end at its next progress call."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Give it a moment; True when it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _publish(self, done: int, total: int | None, note: str) -> None:
        if self._stop.is_set():
            raise Stopped
        self.done, self.total, self.note = done, total, note

    def _run(self) -> None:
        try:
            self.result = self._work(self._publish)
        except Stopped:
            self.stopped = True
        except InspectorError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - a thread has nobody above it; the page raises it again
            _LOG.error("a job failed", exc_info=error)
            self.error = error


_results: OrderedDict[Hashable, object] = OrderedDict()
_lock = threading.Lock()


def finished(key: Hashable, kind: type[T]) -> T | None:
    """A result computed before, by whichever session."""
    with _lock:
        result = _results.get(key)
        if result is not None:
            _results.move_to_end(key)
    return result if isinstance(result, kind) else None


def keep(key: Hashable, result: object) -> None:
    """Remember a result; the oldest unused ones go."""
    with _lock:
        _results[key] = result
        _results.move_to_end(key)
        while len(_results) > _KEPT:
            _results.popitem(last=False)


def begin(key: Hashable, kind: type[T], work: Callable[[Progress], T], *, patience: float = 0.25) -> T | None:
    """The result when it is there, or comes within `patience` seconds; else the work goes on behind. Draws nothing.

    Raises what the work raised.
    """
    result = finished(key, kind)
    if result is not None:
        return result
    jobs = _jobs()
    job = jobs.get(key)
    if job is None:
        job = jobs[key] = Job(work).start()
    if not job.wait(patience) or job.stopped:
        return None
    del jobs[key]
    if job.error is not None:
        raise job.error
    keep(key, job.result)
    return finished(key, kind)


def is_known(key: Hashable) -> bool:
    """Whether this session has asked for it: it is at work, or was stopped."""
    return key in _jobs()


def offer(draw: Callable[[], bool]) -> bool:
    """Whether the button that `draw` draws was clicked. The offer then gives its place to the progress."""
    place = st.empty()
    with place.container():
        asked = draw()
    if asked:
        place.empty()
    return asked


def await_job(key: Hashable, kind: type[T], work: Callable[[Progress], T], *, title: str) -> T | None:
    """The same, and while it is not there its progress is drawn, or that it was stopped and how to start again."""
    result = begin(key, kind, work)
    job = _jobs().get(key)
    if result is not None or job is None:
        return result
    if job.stopped:
        st.info("Stopped: nothing was kept.", icon=":material/cancel:")
        if st.button("Start again", key=f"again-{hash(key)}"):
            del _jobs()[key]
            st.rerun()
        return None
    _watch(job, title, f"stop-{hash(key)}")
    return None


def _jobs() -> dict[Hashable, Job[Any]]:
    held: dict[Hashable, Job[Any]] = st.session_state.setdefault("jobs", {})
    return held


@st.fragment(run_every=0.4)
def _watch(job: Job[T], title: str, key: str) -> None:
    if job.wait(0):
        st.rerun()
    garbage.set_aside()  # the work may have imported torch
    share = min(1.0, job.done / job.total) if job.total else 0.0
    bar, button = st.columns([6, 1], vertical_alignment="center")
    bar.progress(share, text=f"{title} · {human_share(share)}" if job.total else title)
    button.button("Stop", key=key, on_click=job.stop, icon=":material/stop_circle:")
