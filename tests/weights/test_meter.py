"""Work over many items by a few threads: in order, with the first failure, and no task of its own for each item."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from inspector.progress import Stopped, silent
from inspector.weights.meter import Meter


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_answers_stand_in_the_order_of_the_items(workers: int) -> None:
    assert Meter(silent, 0).over(lambda n: n * n, range(100), workers) == [n * n for n in range(100)]
    assert Meter(silent, 0).over(str, (), workers) == []


def test_what_fails_is_raised_and_the_other_thread_ends() -> None:
    def work(n: int) -> int:
        if n == 3:
            raise ValueError("the third")
        return n

    before = threading.active_count()
    with pytest.raises(ValueError, match="the third"):
        Meter(silent, 0).over(work, range(50), 2)
    assert threading.active_count() == before


def test_a_stop_takes_no_further_item() -> None:
    begun, stopped = [], threading.Event()

    def stop(done: int, total: int, note: str) -> None:
        stopped.set()
        raise Stopped

    def work(n: int) -> None:
        begun.append(n)
        stopped.wait(20)

    with pytest.raises(Stopped):
        Meter(stop, 1).over(work, range(1000), 2)
    assert len(begun) < 10


def test_twenty_thousand_items_are_a_task_per_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = []
    submit = ThreadPoolExecutor.submit

    def counted(self: ThreadPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Any:
        tasks.append(work)
        return submit(self, work, *arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    Meter(silent, 0).over(str, range(20_000), 3)
    assert len(tasks) == 3
