"""One loop over any executor: the same outcomes everywhere, a bad piece costs itself, nothing kept is done again."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import UsageError
from inspector.progress import Stopped
from inspector.sweep.engines import Engine, Given, Inline, Processes, Threads, engine_of
from inspector.sweep.piece import Part, Piece, batches_of, key_of, parse_part
from inspector.sweep.run import sweep
from inspector.sweep.store import ResultStore, open_store
from tests.sweep.works import Square, calls, lost


def pieces_of(count: int) -> list[Piece[int]]:
    return [Piece(item=n, key=key_of("squares", n), nbytes=n) for n in range(count)]


def run(work: Square, count: int, engine: Engine, store: ResultStore | None = None) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for place, outcome in sweep("squares", pieces_of(count), work, lost=lost, engine=engine, store=store):
        assert place not in found
        found[place] = outcome.data
    return found


WANTED = {n: b"%d" % (n * n) for n in range(60)}


def test_every_engine_gives_the_same(tmp_path: Path) -> None:
    assert run(Square(), 60, Inline()) == WANTED
    assert run(Square(), 60, Threads(3)) == WANTED
    with ThreadPoolExecutor(2) as own:
        assert run(Square(), 60, Given(own, 2)) == WANTED
    with engine_of("processes", 2) as engine:
        assert run(Square(), 60, engine) == WANTED


def test_what_is_kept_is_not_done_again(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    work = Square(log=str(tmp_path / "log"), passing=(7,))
    store = open_store(str(tmp_path / "store"))
    assert len(run(work, 20, Inline(), store)) == 20
    assert run(work, 60, Threads(2), open_store(str(tmp_path / "store"))) == WANTED
    # 7 may not be kept: it is done in each run.
    assert calls(tmp_path / "log") == sorted([*range(60), 7])


def test_what_stands_aside_is_kept_under_the_same_key_and_given_to_nobody(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    outcomes = sweep(
        "squares", pieces_of(20), Square(passing=(7,)), lost=lost, engine=Threads(2), store=store, aside="cubes"
    )
    assert {place: outcome.data for place, outcome in outcomes} == {n: WANTED[n] for n in range(20)}
    keys = {key_of("squares", n): n for n in range(20)}
    held = {keys[key]: data for key, data in store.load("cubes", keys)}
    assert held == {n: b"%d" % n**3 for n in range(20) if n != 7}
    # Where nobody asks for it, nothing is kept.
    run(Square(), 20, Inline(), open_store(str(tmp_path / "other")))
    assert (
        sorted(path.name.partition("-")[0] for path in (tmp_path / "other" / "results").iterdir()) == ["squares"] * 20
    )


def test_a_piece_that_ends_its_process_costs_itself_alone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    with engine_of("processes", 2) as engine:
        found = run(Square(fatal=(13, 41)), 60, engine, store)
    assert {n: found[n] for n in (13, 41)} == {n: b"lost %d: its worker ended" % n for n in (13, 41)}
    assert {n: one for n, one in found.items() if n not in (13, 41)} == {
        n: one for n, one in WANTED.items() if n not in (13, 41)
    }
    # Nor is it remembered: another machine may have the room.
    assert run(Square(), 60, Inline(), open_store(str(tmp_path / "store"))) == WANTED


@pytest.mark.parametrize("engine", [Inline(), Threads(2)])
def test_work_that_fails_as_it_should_not_is_told(engine: Engine) -> None:
    found = run(Square(failing=(0, 59)), 60, engine)
    assert found[59] == b"lost 59: ValueError: 59 is not liked" and found[0].startswith(b"lost 0")
    assert found[30] == b"900"


@pytest.mark.parametrize("stop_at", [40, 200, 360])
def test_stopping_keeps_what_was_done(tmp_path: Path, stop_at: int) -> None:
    (tmp_path / "log").mkdir()
    work = Square(log=str(tmp_path / "log"), seconds=0.01)
    store = open_store(str(tmp_path / "store"))

    def progress(done: int, total: int | None, note: str) -> None:
        assert total == 400
        if done >= stop_at:
            raise Stopped

    began = time.monotonic()
    with pytest.raises(Stopped), engine_of("threads", 2) as engine:
        for _ in sweep("squares", pieces_of(400), work, lost=lost, engine=engine, store=store, progress=progress):
            pass
    assert time.monotonic() - began < 10
    first = calls(tmp_path / "log")
    # What was under way ends, and nothing new begins.
    assert stop_at <= len(first) < min(400, stop_at + 180)
    assert not [path for path in (tmp_path / "store").rglob("*") if path.name.startswith(".")]
    kept = len(dict(open_store(str(tmp_path / "store")).load("squares", {one.key for one in pieces_of(400)})))
    assert kept >= stop_at
    with engine_of("threads", 2) as engine:
        assert len(run(Square(log=work.log), 400, engine, open_store(str(tmp_path / "store")))) == 400
    assert len(calls(tmp_path / "log")) == len(first) + 400 - kept


def test_memory_of_the_driver_does_not_grow_with_the_pieces() -> None:
    engine = Threads(2)
    submitted: list[int] = []
    real = engine.submit

    def counted(function: object, /, *args: object) -> object:
        submitted.append(1)
        return real(function, *args)  # type: ignore[arg-type]

    engine.submit = counted  # type: ignore[method-assign, assignment]
    most = taken = 0
    for _ in sweep("squares", pieces_of(2000), Square(), lost=lost, engine=engine):
        taken += 1
        most = max(most, len(submitted) * 62 - taken)
    engine.close(stop=False)
    assert taken == 2000 and most <= (engine.window + 1) * 62


def test_an_executor_that_nobody_knows_is_named() -> None:
    with pytest.raises(UsageError, match="There is no executor 'slurm'"), engine_of("slurm"):
        pass


def test_processes_end_with_a_sweep_that_is_stopped() -> None:
    import multiprocessing

    before = set(multiprocessing.active_children())
    with pytest.raises(Stopped), engine_of("processes", 2) as engine:
        for _ in sweep("squares", pieces_of(8), Square(seconds=30), lost=lost, engine=engine, progress=stop_at_once):
            pass
    ends = time.monotonic() + 10
    # Asked again and again: the pool's own thread waits for the same children, and one that it has just reaped counts
    # as alive here until that thread has written its exit code down.
    while set(multiprocessing.active_children()) - before and time.monotonic() < ends:
        time.sleep(0.01)
    assert not set(multiprocessing.active_children()) - before
    assert isinstance(engine, Processes)


def stop_at_once(done: int, total: int | None, note: str) -> None:
    raise Stopped


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 7), st.integers(1, 60))
def test_batches_hold_everything_once_and_in_order(sizes: list[int], most: int, most_nbytes: int) -> None:
    found = batches_of(list(enumerate(sizes)), most=most, most_nbytes=most_nbytes)
    assert [place for batch in found for place in batch] == list(range(len(sizes)))
    for batch in found:
        assert len(batch) <= most
        assert len(batch) == 1 or sum(sizes[place] for place in batch) <= most_nbytes


@given(st.lists(st.text(max_size=8), unique=True), st.integers(1, 9))
def test_every_name_is_of_one_part(names: list[str], of: int) -> None:
    for name in names:
        assert sum(Part(number=n, of=of).holds(name) for n in range(1, of + 1)) == 1


def test_parts_are_about_equal() -> None:
    counts = [sum(Part(number=n, of=16).holds(f"model_{i}.pth") for i in range(4000)) for n in range(1, 17)]
    assert sum(counts) == 4000 and min(counts) > 180 and max(counts) < 320


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "-1/4", "1/0", "1/1/1", "a/b", "１/2", "1/99999999"])
def test_what_is_no_part_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="is no part"):
        parse_part(text)
    assert parse_part("3/16") == Part(number=3, of=16)
