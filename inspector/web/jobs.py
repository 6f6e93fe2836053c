"""Heavy work asked of the workers: waited for with its place in the queue, watched with progress, stopped.

A page calls `ask` for what it cannot go on without, and `await_job` for what takes long while the rest of the page is
drawn. A job goes on while its visitor is on another page or loads this one again; when nobody is left, it is stopped.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import streamlit as st
from streamlit.runtime import Runtime, exists
from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.errors import UsageError
from inspector.jobs.client import Client, Running
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import kind_named
from inspector.jobs.settings import own_settings
from inspector.progress import Stopped
from inspector.units import human_duration, human_share
from inspector.web.session import owner
from inspector.web.store import the_store
from inspector.web.text import escaped

# Without a word; then what is waited for is said; then it can be stopped.
_SILENT_SECONDS, _PATIENT_SECONDS = 0.3, 2.0
_POLL_SECONDS = 0.25
# A reload takes a second or two; who has not come back by then has left.
_GONE_SECONDS = 30.0
_SWEEP_SECONDS = 5.0
_STOPPED = "stopped-jobs"


@lru_cache(maxsize=1)
def the_client() -> Client:
    """The one of this server. Raises UsageError for settings that mean nothing."""
    client = Client(own_settings(the_store().root / "results"))
    atexit.register(client.close)
    threading.Thread(target=_look_after, args=(client,), daemon=True, name="inspector-readers").start()
    return client


def ask(job: Job, *, says: str = "") -> Any:
    """The result. Meanwhile the page waits here, with what it waits for, its place in the queue, and a way to stop.

    Raises what the work raised, and WorkEnded where it was ended.
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        # A download, or a program: there is no page to say anything on.
        running = _asked(job)
        running.wait()
        return _result(running)
    _leave_if_stopped(job)
    running = _asked(job)
    if running.wait(_SILENT_SECONDS):
        return _result(running)
    try:
        _wait_here(running, says or running.kind.says)
    except BaseException:
        if not running.kind.kept:
            running.stop()  # Nobody else can want it.
        raise
    return _result(running)


def _wait_here(running: Running, says: str) -> None:
    job, began, place, stop = running.job, time.monotonic(), st.empty(), st.empty()
    offered = False
    while not running.wait(_POLL_SECONDS):
        # Drawing is also where Streamlit ends this run when the visitor went on.
        place.html(f'<p class="mi-waiting" role="status">{escaped(_waiting(running, says))}</p>')
        if not offered and time.monotonic() - began > _PATIENT_SECONDS:
            offered = True
            stop.button("Stop", key=f"stop-{job.key[:16]}", on_click=_stop, args=(job,), icon=":material/stop_circle:")
        running.seen = time.monotonic()
    place.empty()
    stop.empty()


def begin(job: Job, *, patience: float = _SILENT_SECONDS) -> Any | None:
    """The result when it is there, or comes within `patience` seconds; else the work goes on. Draws nothing.

    Raises what the work raised.
    """
    if job.key in _stopped():
        return None
    running = _asked(job)
    return _result(running) if running.wait(patience) else None


def start(job: Job) -> Running:
    """Ask for it and wait for nothing. Whoever shows it calls `follow` on each run of its page."""
    return _asked(job)


def follow(running: Running, *, title: str, patience: float = _SILENT_SECONDS) -> bool:
    """Whether it has ended; while it has not, its progress is drawn, and this session is one of those who wait."""
    _note_reader(running)
    if running.wait(patience):
        return True
    _watch(running, running.job, title)
    return False


def is_known(job: Job) -> bool:
    """Whether it is at work, or there, or was stopped in this session."""
    client = the_client()
    return job.key in _stopped() or client.find(job) is not None or client.known(job)[0]


def offer(draw: Callable[[], bool]) -> bool:
    """Whether the button that `draw` draws was clicked. The offer then gives its place to the progress."""
    place = st.empty()
    with place.container():
        asked = draw()
    if asked:
        place.empty()
    return asked


def await_job(job: Job, *, title: str) -> Any | None:
    """The result; while it is not there its progress is drawn, or that it was stopped and how to start again.

    Of a kind whose result is kept: it ends between two runs of the page, and the second would ask for it anew, forever.
    """
    if not kind_named(job.kind).kept:
        raise UsageError(f"The result of {job.kind} is not kept: nobody can await it.")
    result = begin(job)
    if result is not None:
        return result
    if job.key in _stopped():
        _offer_again(job)
        return None
    running = the_client().find(job)
    if running is None:
        # It ended this moment.
        return begin(job)
    _watch(running, job, title)
    return None


def _asked(job: Job) -> Running:
    running = the_client().ask(job, visitor=_visitor())
    _note_reader(running)
    return running


def _note_reader(running: Running) -> None:
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None:
        running.readers.add(context.session_id)
    running.seen = time.monotonic()


def _visitor() -> str:
    return owner() if get_script_run_ctx(suppress_warning=True) is not None else ""


def _result(running: Running) -> Any:
    if running.error is not None:
        raise running.error
    if running.stopped:
        if get_script_run_ctx(suppress_warning=True) is None:
            raise Stopped
        _stopped().add(running.job.key)
        _leave_if_stopped(running.job)
    return running.result


def _stopped() -> set[str]:
    """Keys of what this session stopped."""
    held: set[str] = st.session_state.setdefault(_STOPPED, set())
    return held


def _stop(job: Job) -> None:
    running = the_client().find(job)
    if running is not None:
        _stopped().add(job.key)
        running.stop()


def _leave_if_stopped(job: Job) -> None:
    """What was stopped is not begun again by itself: the page ends here until the visitor wants it."""
    if job.key in _stopped():
        _offer_again(job)
        st.stop()


def _offer_again(job: Job) -> None:
    goes_on = kind_named(job.kind).goes_on
    kept = "what was done is kept, and the next start goes on there" if goes_on else "nothing was kept"
    st.info(f"Stopped: {kept}.", icon=":material/cancel:")
    if st.button("Go on" if goes_on else "Start again", key=f"again-{job.key[:16]}"):
        _stopped().discard(job.key)
        _asked(job)
        st.rerun()


def _waiting(running: Running, says: str) -> str:
    if running.place:
        expected = f", about {human_duration(running.expected)}" if running.expected >= 1 else ""
        return f"{says} · waiting for others: place {running.place}{expected}"
    share = f" · {human_share(min(1.0, running.done / running.total))}" if running.total else ""
    return f"{says} …{share}"


@st.fragment(run_every=0.4)
def _watch(running: Running, job: Job, title: str) -> None:
    if running.wait(0):
        st.rerun()
    running.seen = time.monotonic()
    share = min(1.0, running.done / running.total) if running.total else 0.0
    text = _waiting(running, title) if running.place or not running.total else f"{title} · {human_share(share)}"
    # A column would cut the button's word where the page gives this half its width.
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(share, text=text, width="stretch")
        st.button("Stop", key=f"stop-{job.key[:16]}", on_click=_stop, args=(job,), icon=":material/stop_circle:")


def _look_after(client: Client) -> None:
    """Jobs that nobody waits for any more are stopped; the broker hears how many visitors there are."""
    while not client.closed.wait(_SWEEP_SECONDS):
        active = active_sessions()
        if active is None:
            continue
        client.say_visitors(len(active))
        now = time.monotonic()
        for running in client.running():
            if running.readers and not running.readers & active and now - running.seen > _GONE_SECONDS:
                running.stop()


def active_sessions() -> set[str] | None:
    """Sessions with an open connection; None where there is no server."""
    if not exists():
        return None
    # Streamlit has no public name for all of them.
    manager = getattr(Runtime.instance(), "_session_mgr", None)
    return None if manager is None else {info.session.id for info in manager.list_active_sessions()}
