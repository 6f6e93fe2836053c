"""Work beside the page: it reports, it can be stopped, it leaves nothing half-done, and its errors come back.

Here in threads of this process; tests/jobs has the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inspector.errors import ReadError
from inspector.jobs.client import Client
from inspector.jobs.job import Job
from inspector.jobs.kinds import table
from inspector.web import jobs, uploads
from tests.web.finishing import forget_client


@pytest.fixture(autouse=True)
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("INSPECTOR_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("INSPECTOR_WORKERS", "0")
    uploads.the_store.cache_clear()
    forget_client()
    yield jobs.the_client()
    forget_client()
    uploads.the_store.cache_clear()


def _trial(how: str, amount: float = 0.0) -> Job:
    return Job(kind="trial", arguments=(how, amount))


def test_a_job_brings_its_result_and_its_last_progress(client: Client) -> None:
    running = client.ask(_trial("sleep", 0.2))
    assert running.wait(10)
    assert (running.result, running.done, running.total, running.note) == ("sleep", 3, 4, "step 3")


def test_stopping_ends_the_work_at_its_next_step(client: Client) -> None:
    running = client.ask(_trial("sleep", 60.0))
    running.stop()
    assert running.wait(10)
    assert running.stopped
    assert running.result is None
    assert running.done < 100


@pytest.mark.parametrize(("how", "kind"), [("fail", ReadError), ("raise", ZeroDivisionError)])
def test_an_error_is_raised_where_it_was_asked(how: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        jobs.ask(_trial(how))


def test_equal_questions_are_one_job(client: Client) -> None:
    first = client.ask(_trial("sleep", 60.0), visitor="a")
    assert client.ask(_trial("sleep", 60.0), visitor="b") is first
    assert client.ask(_trial("sleep", 61.0), visitor="b") is not first
    for running in client.running():
        running.stop()
        assert running.wait(10)
    assert client.running() == []


def _slow_page() -> None:
    from inspector.jobs.job import Job
    from inspector.web import jobs

    jobs.await_job(Job(kind="trial", arguments=("sleep", 60.0)), title="Slow work")


def _waiting_page() -> None:
    import streamlit as st

    from inspector.jobs.job import Job
    from inspector.web import jobs

    st.text(jobs.ask(Job(kind="trial", arguments=("sleep", 1.0)), says="Slow work"))


def test_a_visitor_stops_the_work_and_may_start_it_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only what is kept can be awaited.
    monkeypatch.setitem(table._BY_ID, "trial", replace(table.kind_named("trial"), kept=True))
    app = AppTest.from_function(_slow_page, default_timeout=30).run()
    assert [b.label for b in app.button] == ["Stop"]
    (running,) = client.running()
    app.button[0].click().run()
    assert running.wait(10)
    app.run()
    assert not app.exception
    assert app.info[0].value == "Stopped: nothing was kept."
    assert [b.label for b in app.button] == ["Start again"]
    app.button[0].click().run()
    assert [b.label for b in app.button] == ["Stop"]
    (again,) = client.running()
    assert again is not running
    again.stop()
    assert again.wait(10)


def test_a_page_waits_for_what_it_needs_and_then_shows_it() -> None:
    app = AppTest.from_function(_waiting_page, default_timeout=30).run()
    assert not app.exception
    assert [text.value for text in app.text] == ["sleep"]
    assert not app.button and not app.get("html")
