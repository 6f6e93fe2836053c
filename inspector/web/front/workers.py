"""Whether the workers answer, and what their broker has counted, for whoever runs the server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from inspector.jobs.job import Job
from inspector.web.front.counters import counters
from inspector.web.jobs import the_client

# A broker answers in a millisecond; a worker that has nothing to do as well.
_PATIENCE = 2.0
_KEPT_SECONDS = 1.0
_kept: tuple[float, dict[str, Any] | None] = (-1e9, None)


async def workers_answer() -> str:
    """Why no job could be begun now, "" where one could, or where all workers are at work."""
    return await asyncio.to_thread(_why_not)


def _why_not() -> str:
    client = the_client()
    state = client.state(_PATIENCE)
    if state is None:
        return "The broker of the workers does not answer."
    if state["busy"] >= max(1, client.settings.workers):
        return ""
    running = client.ask(Job(kind="trial", arguments=("ping", time.monotonic())))
    if running.wait(_PATIENCE):
        return "" if running.error is None else f"A worker answers: {running.error}"
    running.stop()
    return "The workers are not ready yet."


def _state() -> dict[str, Any]:
    global _kept
    if time.monotonic() - _kept[0] > _KEPT_SECONDS:
        _kept = (time.monotonic(), the_client().state(_PATIENCE))
    return _kept[1] or {}


def _ended(how: str) -> float:
    return float(_state().get("counts", {}).get(how, 0))


counters.gauge("inspector_workers", "Worker processes.", lambda: _state().get("workers", 0))
counters.gauge("inspector_workers_busy", "Of them at work.", lambda: _state().get("busy", 0))
counters.gauge("inspector_jobs_waiting", "Jobs in the queue.", lambda: _state().get("waiting", 0))
counters.gauge(
    "inspector_workers_bytes", "Memory of workers beyond torch itself.", lambda: _state().get("held_nbytes", 0)
)
counters.gauge("inspector_jobs_done", "Jobs with a result since the broker began.", lambda: _ended("done"))
counters.gauge("inspector_jobs_failed", "Jobs whose work said why not.", lambda: _ended("failed"))
counters.gauge("inspector_jobs_died", "Jobs whose worker was ended or died.", lambda: _ended("died") + _ended("broken"))
counters.gauge("inspector_jobs_stopped", "Jobs that a visitor stopped or left.", lambda: _ended("stopped"))
