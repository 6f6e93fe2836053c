"""One giant, and two against each other, on a Dask cluster with their store in a folder or on an S3 server: a worker is
killed, then the driver; the answer is that of one pass, and only what is missing is done again."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import inspector.giants.measure
import inspector.giants.pairs
from inspector.compare.diff import compare_checkpoints
from inspector.giants.measure import read_in_pieces
from inspector.giants.pairs import PairsByPieces
from inspector.readers import open_checkpoint
from inspector.sweep.engines import engine_of
from inspector.sweep.store import ResultStore, open_store
from inspector.weights.measure import read_tensors
from tests.giants.works import calls, compared, logged
from tests.sweep.test_cluster import Dask

Client = pytest.importorskip("distributed").Client

ROOT = Path(__file__).parents[2]
_TENSORS = 40
_NBYTES = 64 * 64 * 4


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each call of the work leaves a note; before workers start, who have it from here."""
    found = tmp_path / "log"
    found.mkdir()
    monkeypatch.setenv("LOG", str(found))
    monkeypatch.setenv("SLOWER", "0.05")
    monkeypatch.setattr(inspector.giants.measure, "measure_piece", logged)
    monkeypatch.setattr(inspector.giants.pairs, "compare_piece", compared)
    return found


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.outside)])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "store")
        return
    s3fs = pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    from tests.remote.s3_server import server

    with contextmanager(server)() as started:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", started.url)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        s3fs.S3FileSystem.clear_instance_cache()
        # What a server of moto's holds is the process's own.
        name = f"audits{started.url.rpartition(':')[2]}"
        s3fs.S3FileSystem().mkdir(name)
        # Results of two seconds travel together there, and are what a killed driver loses.
        monkeypatch.setenv("SLOWER", "0.5")
        yield f"s3://{name}/giant"


@pytest.fixture
def dask(log: Path, store: str, tmp_path: Path) -> Iterator[Dask]:
    """Behind the others, whose settings its workers have."""
    (tmp_path / "dask").mkdir()
    found = Dask(tmp_path / "dask", 2)
    yield found
    found.close()


@pytest.fixture
def giants(tmp_path: Path) -> tuple[Path, Path]:
    """The second has a number in every fourth tensor that the first has not."""
    rng = np.random.default_rng(1)
    state = {f"layers.{n:02}.weight": rng.standard_normal((64, 64)).astype(np.float32) for n in range(_TENSORS)}
    save_file(state, tmp_path / "a.safetensors")
    for n in range(0, _TENSORS, 4):
        state[f"layers.{n:02}.weight"][n, 3] += 1
    save_file(state, tmp_path / "b.safetensors")
    return tmp_path / "a.safetensors", tmp_path / "b.safetensors"


def measured(giants: tuple[Path, Path], address: str = "", store: ResultStore | None = None) -> str:
    """The answers, to the last bit; of one pass without an address."""
    checkpoint = open_checkpoint(giants[0])
    if not address:
        return repr(read_tensors(checkpoint, checkpoint.tensors).answers)
    with engine_of(address) as engine:
        found = read_in_pieces(checkpoint, checkpoint.tensors, engine=engine, store=store, most_nbytes=_NBYTES)
    return repr(found.answers)


def differing(giants: tuple[Path, Path], address: str = "", store: ResultStore | None = None) -> str:
    a, b = (open_checkpoint(path) for path in giants)
    if not address:
        return repr(dataclasses.replace(compare_checkpoints(a, b), seconds=0.0))
    with engine_of(address) as engine:
        pairwise = PairsByPieces(engine, store, most_nbytes=2 * _NBYTES)
        return repr(dataclasses.replace(compare_checkpoints(a, b, pairwise=pairwise), seconds=0.0))


def third_worker(dask: Dask) -> Any:
    """One more than the cluster begins with; there once this returns."""
    guest = dask.add_worker()
    with Client(dask.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)
    return guest


def wait_for_calls(log: Path, count: int, alive: Any = None) -> None:
    while len(list(log.iterdir())) < count:
        assert alive is None or alive.poll() is None, "it had ended before"
        time.sleep(0.01)


@pytest.mark.parametrize("asked", [measured, differing])
def test_a_worker_and_then_the_driver_are_killed(
    dask: Dask, log: Path, giants: tuple[Path, Path], store: str, asked: Any
) -> None:
    once = asked(giants)
    guest = third_worker(dask)
    most = str(_NBYTES if asked is measured else 2 * _NBYTES)
    line = [sys.executable, "-m", "tests.giants.works", str(giants[0]), store, most, dask.address]
    line += [str(giants[1])] if asked is differing else []
    driver = subprocess.Popen(line, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True)
    wait_for_calls(log, _TENSORS // 4, driver)
    dask.kill(guest)
    wait_for_calls(log, _TENSORS // 2, driver)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    # What the scheduler had sent out already ends by itself.
    time.sleep(0.5)
    question = "numbers" if asked is measured else "pairs"
    before, kept = len(calls(log)), sum(1 for _ in open_store(store).load(question, _Any()))
    assert asked(giants, dask.address, open_store(store)) == once
    done = calls(log)
    assert {name.partition("@")[0] for name in done} == {f"layers.{n:02}.weight" for n in range(_TENSORS)}
    assert len(done) - before == _TENSORS - kept and 0 < kept < _TENSORS
    # And from the store alone.
    assert asked(giants, dask.address, open_store(store)) == once and calls(log) == done
    # Of the workers at most what each had, what waited there, and what was on its way into the store.
    print(f"{kept} of {_TENSORS} kept, {len(done)} calls")
    assert len(done) <= _TENSORS + 20


@pytest.mark.parametrize("asked", [measured, differing])
def test_a_worker_that_is_killed_costs_no_answer(
    dask: Dask, log: Path, giants: tuple[Path, Path], store: str, asked: Any
) -> None:
    once = asked(giants)
    guest = third_worker(dask)

    def killing() -> None:
        wait_for_calls(log, _TENSORS // 2)
        dask.kill(guest)

    killer = threading.Thread(target=killing)
    killer.start()
    assert asked(giants, dask.address, open_store(store)) == once
    killer.join()
    assert guest.poll() is not None
    # What it worked on and what it held is done again, and nothing else.
    assert _TENSORS <= len(calls(log)) <= _TENSORS + 4 * 2
    assert sum(1 for _ in open_store(store).load("numbers" if asked is measured else "pairs", _Any())) == _TENSORS


class _Any:
    def __contains__(self, key: object) -> bool:
        return True
