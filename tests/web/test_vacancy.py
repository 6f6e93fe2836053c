"""After the last visitor has left: what was kept goes, once, and not while somebody is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.memory_session_storage import MemorySessionStorage

from inspector.jobs.client import Client
from inspector.jobs.job import Job
from inspector.web import jobs, uploads
from inspector.web.front import vacancy
from tests.web.finishing import forget_client


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("INSPECTOR_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("INSPECTOR_WORKERS", "0")
    uploads.the_store.cache_clear()
    forget_client()
    yield jobs.the_client()
    forget_client()
    uploads.the_store.cache_clear()


class _Session:
    """As the storage knows it."""

    def __init__(self, name: str) -> None:
        self.id = name


class _Info:
    def __init__(self, name: str) -> None:
        self.session = _Session(name)


def _house(monkeypatch: pytest.MonkeyPatch, storage: MemorySessionStorage) -> None:
    manager = type("Manager", (), {"_session_storage": storage})()
    runtime = type("Runtime", (), {"_session_mgr": manager})()
    monkeypatch.setattr(vacancy.Runtime, "instance", lambda: runtime)


def test_answers_open_files_and_sessions_whose_time_is_over_go(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    running = client.ask(Job(kind="methods"))
    assert running.wait(30) and client.known(Job(kind="methods"))[0]
    released: list[str] = []

    @st.cache_resource(on_release=released.append)
    def opened(name: str) -> str:
        return name

    opened("a file")
    over, young = MemorySessionStorage(ttl_seconds=0), MemorySessionStorage(ttl_seconds=60)
    for storage in (over, young):
        storage.save(_Info("somebody"))  # type: ignore[arg-type]
        _house(monkeypatch, storage)
        vacancy.clear()
    assert released == ["a file"] and not client.known(Job(kind="methods"))[0]
    # Who comes back in time finds the page as it was.
    assert not over._cache._data and young.get("somebody") is not None  # type: ignore[attr-defined]


def test_it_is_done_once_after_each_time_that_somebody_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []
    there: list[set[str]] = [set(), {"a"}, {"a"}, set(), set(), {"b"}, set(), set()]
    looks = iter(there)
    monkeypatch.setattr(vacancy, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(vacancy, "EMPTY_SECONDS", -1.0)

    def sessions() -> set[str]:
        try:
            return next(looks)
        except StopIteration:
            raise asyncio.CancelledError from None

    monkeypatch.setattr(vacancy, "active_sessions", sessions)
    monkeypatch.setattr(vacancy, "clear", lambda: times.append(1))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(vacancy.clear_when_empty())
    assert len(times) == 2


def test_a_session_whose_line_broke_is_over_before_the_house_is_cleared() -> None:
    """So that all of it is given back a minute after the last has left."""
    config = (Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert "disconnectedSessionTTL = 45" in config and 45 < vacancy.EMPTY_SECONDS < 55
