"""A Dask scheduler and workers in processes of their own: killed, poisoned, gone, of another version."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from inspector.cam.describe import Setting
from inspector.cam.spec import MapRequest
from inspector.cam.sweeping.maps import map_pictures
from inspector.cam.sweeping.run import Running
from inspector.compare.diff import compare_checkpoints
from inspector.errors import ReadError
from inspector.evaluate.labels import open_class_folders
from inspector.evaluate.run import score_model
from inspector.giants.measure import read_in_pieces
from inspector.giants.pairs import PairsByPieces
from inspector.lint.audit import audit
from inspector.lint.check import check
from inspector.readers import open_checkpoint
from inspector.survey.survey import How
from inspector.sweep.engines import Inline, engine_of
from inspector.sweep.run import sweep
from inspector.sweep.store import open_store
from inspector.weights.measure import read_tensors
from sample_models.labelled import write_labelled
from tests.cam.test_map_pieces import MODEL as MAPPED
from tests.cam.test_map_pieces import pictures
from tests.cam.test_map_pieces import told as told_of_maps
from tests.evaluate.works import loading
from tests.giants.test_pairs import files, opened, told
from tests.lint.test_check import folder, request_of
from tests.sweep.test_run import WANTED, pieces_of
from tests.sweep.works import Square, calls, lost

Client = pytest.importorskip("distributed").Client
__all__ = ["files", "folder", "pictures"]

ROOT = Path(__file__).parents[2]


class Dask:
    """A scheduler and some workers with one thread each, each in a process of its own."""

    def __init__(self, place: Path, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        # A worker that dies takes what it works on along; a second death is enough to suspect that.
        settings = {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        self._environment = {**os.environ, **settings}
        self._place = place
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        self.workers = [self.add_worker() for _ in range(workers)]

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start("dask_worker", self.address, "--nthreads", "1", "--no-dashboard")

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{name}", *arguments],
            env=self._environment,
            cwd=self._place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """It and its children, with nothing said."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                self.kill(process)


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    found = Dask(tmp_path_factory.mktemp("dask"), 2)
    yield found
    found.close()


def test_an_audit_on_a_cluster_reports_what_a_check_does(dask: Dask, folder: Path, tmp_path: Path) -> None:
    request = request_of(folder, base=folder)
    how = How(executor=dask.address, store=open_store(str(tmp_path / "s")))
    assert replace(audit(request, how).report, seconds=0.0) == replace(check(request).report, seconds=0.0)


def test_numbers_by_pieces_on_a_cluster_are_those_of_one_pass(dask: Dask, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    state = {f"layers.{n}.weight": rng.standard_normal((50, 60 + n)).astype(np.float32) for n in range(12)}
    save_file(state, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    with engine_of(dask.address) as engine:
        found = read_in_pieces(checkpoint, checkpoint.tensors, engine=engine, most_nbytes=30_000)
    assert repr(found.answers) == repr(read_tensors(checkpoint, checkpoint.tensors).answers)


def test_pictures_scored_on_a_cluster_give_the_same_bytes(dask: Dask, tmp_path: Path, thorough: bool) -> None:
    """Each worker opens model and pictures by itself, one that is killed meanwhile costs the piece that it had."""
    if not thorough:
        pytest.skip("make thorough")
    model = str(Path(__file__).resolve().parents[2] / "sample_models" / "files" / "shapes.pth")
    ready = loading(model)()
    folders = open_class_folders(write_labelled(tmp_path / "shapes.zip", each=6))
    torch.set_num_threads(1)
    running = Running(piece=4)
    once = score_model(ready, folders, running)[0].values
    guest = dask.add_worker()
    with Client(dask.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)

    def killing(done: int, total: int | None, note: str) -> None:
        if done and guest.poll() is None:
            dask.kill(guest)

    with engine_of(dask.address) as engine:
        running = replace(running, engine=engine, reopen=loading(model))
        found = score_model(ready, folders, running, progress=killing)[0]
    assert guest.poll() is not None and not found.unread
    assert found.values.tobytes() == once.tobytes()


def test_heat_maps_made_on_a_cluster_are_the_same_bytes(dask: Dask, pictures: list[Path], thorough: bool) -> None:
    """The same of maps: heat, scores and findings to the last bit, the one picture that is none told."""
    if not thorough:
        pytest.skip("make thorough")
    ready = loading(MAPPED)()
    setting = Setting(preprocessing=ready.preprocessing, categories=ready.class_names)
    torch.set_num_threads(1)
    running = Running(piece=4)
    once = told_of_maps(list(map_pictures(ready, pictures, MapRequest(), setting, running)))
    guest = dask.add_worker()
    with Client(dask.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)

    def killing(done: int, total: int | None, note: str) -> None:
        if done and guest.poll() is None:
            dask.kill(guest)

    with engine_of(dask.address) as engine:
        running = replace(running, engine=engine, reopen=loading(MAPPED))
        found = list(map_pictures(ready, pictures, MapRequest(), setting, running, progress=killing))
    assert guest.poll() is not None
    assert told_of_maps(found) == once and len(once) == 9


def test_two_checkpoints_compared_on_a_cluster_give_the_report_of_one_pass(
    dask: Dask, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """Also where a worker is killed meanwhile; each worker opens both by itself."""
    a, b = opened(files)
    once = told(compare_checkpoints(a, b))
    guest = dask.add_worker()
    with Client(dask.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)

    def killing(done: int, total: int | None, note: str) -> None:
        if done and guest.poll() is None:
            dask.kill(guest)

    with engine_of(dask.address) as engine:
        pairwise = PairsByPieces(engine, open_store(str(tmp_path / "s")), most_nbytes=1)
        assert told(compare_checkpoints(a, b, pairwise=pairwise, progress=killing)) == once
    assert guest.poll() is not None
    # From what the workers gave alone.
    kept = PairsByPieces(Inline(), open_store(str(tmp_path / "s")), most_nbytes=1)
    assert told(compare_checkpoints(*opened(files), pairwise=kept)) == once


def test_a_worker_that_is_killed_costs_no_piece(dask: Dask, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    found: dict[int, bytes] = {}
    guest = dask.add_worker()
    with Client(dask.address, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)
    work = Square(log=str(tmp_path / "log"), seconds=0.02)
    with engine_of(dask.address) as engine:
        for place, outcome in sweep("squares", pieces_of(60), work, lost=lost, engine=engine):
            found[place] = outcome.data
            if len(found) == 15:
                dask.kill(guest)
    assert found == WANTED
    # What was under way on that worker, and what it held, is repeated, and no more than that.
    assert len(calls(tmp_path / "log")) - 60 <= 4 * 2


def test_a_fatal_piece_costs_itself_on_a_cluster(dask: Dask) -> None:
    began = time.monotonic()
    with engine_of(dask.address) as engine:
        found = {
            place: outcome.data
            for place, outcome in sweep("squares", pieces_of(60), Square(fatal=(23,)), lost=lost, engine=engine)
        }
    assert found.pop(23).startswith(b"lost 23: KilledWorker")
    assert found == {n: one for n, one in WANTED.items() if n != 23}
    assert time.monotonic() - began < 60


def test_a_scheduler_that_is_gone_is_told_and_the_store_is_whole(tmp_path: Path) -> None:
    dask = Dask(tmp_path, 1)
    store = open_store(str(tmp_path / "s"))
    began = time.monotonic()
    with pytest.raises(ReadError, match=r"The Dask scheduler at .* is gone"), engine_of(dask.address) as engine:
        work = Square(seconds=0.05)
        for number, _ in enumerate(sweep("squares", pieces_of(200), work, lost=lost, engine=engine, store=store)):
            if number == 20:
                dask.kill(dask.scheduler)
    assert time.monotonic() - began < 60
    dask.close()
    held = dict(open_store(str(tmp_path / "s")).load("squares", {piece.key for piece in pieces_of(200)}))
    assert 20 <= len(held) < 200


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter"))), reason="needs root and iproute2"
)
def test_a_cable_that_is_cut_costs_what_was_at_its_end(tmp_path: Path, thorough: bool) -> None:
    """No connection is reset, nobody says anything: with the limits that docs/scale.md names it ends within two."""
    if not thorough:
        pytest.skip("make thorough")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("no network namespaces here")
    line = ["unshare", "--net", sys.executable, "-m", "tests.sweep.partition", str(tmp_path)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert {int(place): one.encode() for place, one in told["found"].items()} == WANTED
    assert told["seconds"] < 2 * 15 + 60 * 0.2
    # What the one at the end had and was to get next.
    assert 60 < told["calls"] <= 60 + 8


def test_a_worker_of_another_version_is_refused(dask: Dask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.sweep.cluster.engine_version", lambda: "another")
    with pytest.raises(ReadError, match=r"2 of 2 workers .* have another version"), engine_of(dask.address):
        pass


def test_nobody_at_an_address_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.sweep.cluster._CONNECT_SECONDS", 1)
    with pytest.raises(ReadError, match="No Dask scheduler answers"), engine_of("tcp://127.0.0.1:9"):
        pass
