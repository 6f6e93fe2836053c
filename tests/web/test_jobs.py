"""Work beside the page: it reports, it can be stopped, it leaves nothing half-done, and its errors come back."""

from __future__ import annotations

import threading

import pytest
from streamlit.testing.v1 import AppTest

from inspector.errors import ReadError
from inspector.progress import Progress
from inspector.web import jobs
from inspector.web.jobs import Job


def test_a_job_brings_its_result_and_its_last_progress() -> None:
    def work(progress: Progress) -> int:
        for done in range(3):
            progress(done, 3, f"part {done}")
        return 42

    job = Job(work).start()
    assert job.wait(10)
    assert (job.result, job.done, job.total, job.note) == (42, 2, 3, "part 2")


def test_stopping_ends_the_work_at_its_next_step() -> None:
    begun, go_on = threading.Event(), threading.Event()
    steps: list[int] = []

    def work(progress: Progress) -> str:
        for done in range(1000):
            progress(done, 1000, "")
            steps.append(done)
            begun.set()
            go_on.wait(10)
        return "never"

    job = Job(work).start()
    assert begun.wait(10)
    job.stop()
    go_on.set()
    assert job.wait(10)
    assert job.stopped
    assert job.result is None
    assert steps == [0]


@pytest.mark.parametrize("error", [ReadError("It is cut short."), ValueError("unforeseen")])
def test_an_error_waits_for_the_page(error: Exception) -> None:
    def work(progress: Progress) -> str:
        raise error

    job = Job(work).start()
    assert job.wait(10)
    assert job.error is error
    assert not job.stopped


def test_results_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_KEPT", 2)
    jobs._results.clear()
    jobs.keep("a", 1)
    jobs.keep("b", 2)
    assert jobs.finished("a", int) == 1
    jobs.keep("c", 3)
    assert [jobs.finished(key, int) for key in "abc"] == [1, None, 3]
    assert jobs.finished("a", str) is None
    jobs._results.clear()


def _slow_page() -> None:
    import time

    from inspector.web import jobs

    def work(progress):  # type: ignore[no-untyped-def]
        for done in range(6000):
            progress(done, 6000, "")
            time.sleep(0.01)
        return "never"

    jobs.await_job("slow", str, work, title="Slow work")


def test_a_visitor_stops_the_work_and_may_start_it_again() -> None:
    app = AppTest.from_function(_slow_page, default_timeout=30).run()
    assert [b.label for b in app.button] == ["Stop"]
    app.button[0].click().run()
    job = app.session_state["jobs"]["slow"]
    assert job.wait(10)
    app.run()
    assert not app.exception
    assert app.info[0].value == "Stopped: nothing was kept."
    assert [b.label for b in app.button] == ["Start again"]
    app.button[0].click().run()
    assert [b.label for b in app.button] == ["Stop"]
    again = app.session_state["jobs"]["slow"]
    assert again is not job
    again.stop()
    assert again.wait(10)
