"""The garbage collector rests during openings and comes back behind the last of them, whatever happens in between."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from inspector.checkpoint.source import BufferSource
from inspector.errors import ReadError
from inspector.gc_pause import without_collecting
from inspector.readers import open_checkpoint


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    gc.enable() if was_on else gc.disable()


def test_it_rests_and_comes_back() -> None:
    with without_collecting():
        assert not gc.isenabled()
        with without_collecting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_comes_back_after_an_exception() -> None:
    with pytest.raises(KeyError), without_collecting():
        raise KeyError
    assert gc.isenabled()
    with pytest.raises(ReadError):
        open_checkpoint(b"nothing that anybody knows")
    assert gc.isenabled()


def test_where_it_was_off_it_stays_off() -> None:
    gc.disable()
    with without_collecting():
        pass
    assert not gc.isenabled()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("first_out", [0, 1])
def test_overlapping_uses_of_two_threads(first_out: int, fails: bool) -> None:
    """Whichever thread leaves first, and by whichever door, the collector waits for the other one."""
    entered = [threading.Event(), threading.Event()]
    leave = [threading.Event(), threading.Event()]
    left = [threading.Event(), threading.Event()]

    def use(number: int) -> None:
        try:
            with without_collecting():
                entered[number].set()
                assert leave[number].wait(10)
                if fails:
                    raise ReadError("over")
        except ReadError:
            pass
        left[number].set()

    threads = [threading.Thread(target=use, args=(number,)) for number in range(2)]
    for number, thread in enumerate(threads):
        thread.start()
        assert entered[number].wait(10)
    for number, resting in ((first_out, True), (1 - first_out, False)):
        leave[number].set()
        assert left[number].wait(10)
        assert gc.isenabled() is not resting
    for thread in threads:
        thread.join(10)


def test_openings_of_many_threads_at_once() -> None:
    seen: list[bool] = []

    class Watched(BufferSource):
        def read(self, offset: int, n: int) -> bytes:
            seen.append(gc.isenabled())
            return super().read(offset, n)

    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    whole = len(header).to_bytes(8, "little") + header + bytes(4)

    def open_some(data: bytes) -> None:
        for _ in range(20):
            try:
                open_checkpoint(Watched(data))
            except ReadError:
                assert data is not whole

    threads = [threading.Thread(target=open_some, args=(data,)) for data in (whole, whole[:20], whole, b"?")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen and not any(seen)
    assert gc.isenabled()


def test_old_records_are_not_walked_when_it_comes_back() -> None:
    """What was made meanwhile counts as old, and still is collected when it is garbage."""
    runs: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            runs.append(info["collected"])

    gc.unfreeze()
    gc.collect()
    frozen = gc.get_freeze_count()
    with without_collecting():
        for _ in range(100_000):
            cycle: list[object] = []
            cycle.append(cycle)
        del cycle
    gc.callbacks.append(note)
    try:
        [[] for _ in range(3000)]
        assert sum(runs) < 100_000
        gc.collect()
        assert sum(runs) >= 100_000
    finally:
        gc.callbacks.remove(note)
    assert gc.get_freeze_count() == frozen
    gc.freeze()  # as it was


def test_what_a_program_has_frozen_is_not_counted_after_a_small_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three million frozen objects take twenty milliseconds to count, which a small file opens in a fraction of."""
    asked: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(1) or 1)
    with without_collecting():
        kept = [[] for _ in range(100)]
    assert not asked
    with without_collecting():
        kept = [[] for _ in range(100_000)]
    assert asked and kept
