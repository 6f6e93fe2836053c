"""How engines end: whatever ends a sweep early, no process and no thread of a pool complains or stays."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time

import pytest

from inspector.sweep.engines import Processes, engine_of
from inspector.sweep.piece import Piece
from inspector.sweep.run import sweep
from tests.sweep.works import Square, blocked_signals, lost

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def test_a_pool_that_loses_its_processes_while_a_sweep_is_given_up_does_not_complain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)
    before = set(threading.enumerate())
    with pytest.raises(KeyError), engine_of("processes", 2) as engine:
        outcomes = sweep(
            "squares",
            [Piece(item=n) for n in range(60)],
            Square(seconds=0.3),
            lost=lost,
            engine=engine,
            together=1,
        )
        next(outcomes)
        outcomes.close()  # type: ignore[attr-defined]
        # Before the pool is told that it ends, as a killer of processes does it.
        for child in multiprocessing.active_children():
            child.kill()
        threads = set(threading.enumerate()) - before
        end = time.monotonic() + 30
        while any(thread.is_alive() for thread in threads) and time.monotonic() < end:
            time.sleep(0.01)
        raise KeyError("whoever swept has enough")
    assert complaints == []
    assert set(threading.enumerate()) <= before


def test_what_is_given_up_ends_at_once_with_its_thread() -> None:
    before = set(threading.enumerate())
    began = time.monotonic()
    with pytest.raises(KeyError), engine_of("processes", 2) as engine:
        futures = [engine.submit(time.sleep, 60) for _ in range(8)]
        raise KeyError("enough")
    assert time.monotonic() - began < 30
    assert all(future.done() for future in futures)
    assert set(threading.enumerate()) <= before


def test_a_signal_while_processes_start_is_heeded_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[str] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(signal.Signals(number).name))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    engine = Processes(1)
    real = engine._pool.submit

    def submit(*arguments: object) -> object:
        signal.raise_signal(signal.SIGTERM)
        future = real(*arguments)  # type: ignore[arg-type]
        came.append("started")
        return future

    monkeypatch.setattr(engine._pool, "submit", submit)
    try:
        engine.submit(blocked_signals)
        assert came == ["started", "SIGTERM"]
        signal.raise_signal(signal.SIGINT)
        assert came[2:] == ["SIGINT"]
    finally:
        engine.close(stop=False)
        for number, handler in before.items():
            signal.signal(number, handler)


def test_no_ctrl_c_reaches_who_is_started_and_its_end_does() -> None:
    with engine_of("processes", 2) as engine:
        blocked = engine.submit(blocked_signals).result(60)
    assert signal.SIGINT in blocked and signal.SIGTERM not in blocked
    assert signal.SIGINT not in blocked_signals()
