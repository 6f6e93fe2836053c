"""One checkpoint in pieces: the report of one pass from any engine and any size of pieces, and what a kill costs."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import inspector.giants.measure
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError
from inspector.giants import plan
from inspector.giants.measure import read_in_pieces
from inspector.giants.plan import plan_pieces
from inspector.giants.spilled import Spill
from inspector.giants.work import measure_piece
from inspector.giants.written import read, written
from inspector.health.examine import examine
from inspector.progress import Stopped
from inspector.readers import open_checkpoint
from inspector.sweep.engines import Given, Inline, engine_of
from inspector.sweep.store import open_store
from inspector.weights import row_sums
from inspector.weights.measure import Readings, read_tensors
from inspector.weights.moments import LEAF, TILE
from tests.giants.works import calls, logged

ROOT = Path(__file__).parents[2]


def save_shards(folder: Path, shards: dict[str, dict[str, np.ndarray]]) -> Path:  # type: ignore[type-arg]
    folder.mkdir(parents=True)
    weight_map: dict[str, str] = {}
    for number, tensors in enumerate(shards.values(), 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        save_file(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards, and in the second a tensor of more than one leaf."""
    rng = np.random.default_rng(0)
    large = np.resize(rng.integers(-9, 9, 999_983, dtype=np.int8), (LEAF + 3 * TILE) // 1024 * 1024)
    sick = rng.standard_normal((300, 70)).astype(np.float32)
    sick[7, 3] = np.nan
    return save_shards(
        tmp_path_factory.mktemp("giant") / "model",
        {
            "a": {f"layers.{n}.weight": rng.standard_normal((200, 60 + n)).astype(np.float32) for n in range(4)},
            "b": {"table": large.reshape(-1, 1024), "sick.weight": sick},
            "c": {"norm.weight": np.ones(64, np.float16), "empty": np.empty((0, 4), np.float32)},
        },
    )


@pytest.fixture(scope="module")
def once(sharded: Path) -> Readings:
    return one_pass(open_checkpoint(sharded))


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """What cannot be cut: views, shared and sparse tensors, complex and quantised numbers, one cut short."""
    rng = torch.Generator().manual_seed(0)
    weight = torch.randn(90, 40, generator=rng)
    state = {
        "weight": weight,
        "tied": weight,
        "turned": weight.T,
        "row": weight[3],
        "complex": torch.randn(8, 9, dtype=torch.complex64, generator=rng),
        "sparse": torch.eye(6).to_sparse(),
        "half": torch.randn(70, 70, generator=rng).bfloat16(),
        "count": torch.tensor(7),
    }
    torch.save(state, tmp_path / "odd.pth")
    return tmp_path / "odd.pth"


def same(one: Readings, other: Readings) -> bool:
    """To the last bit, NaN included."""
    return repr(one.answers) == repr(other.answers)


def one_pass(checkpoint: Checkpoint) -> Readings:
    return read_tensors(checkpoint, checkpoint.tensors)


@pytest.mark.parametrize("executor", ["", "threads", "processes"])
def test_every_engine_gives_what_one_pass_gives(sharded: Path, once: Readings, executor: str) -> None:
    checkpoint = open_checkpoint(sharded)
    with engine_of(executor, 2 if executor else 1) as engine:
        found = read_in_pieces(checkpoint, checkpoint.tensors, engine=engine, most_nbytes=8 << 20)
    assert same(found, once)


def test_somebodys_own_executor_does(odd: Path, tmp_path: Path) -> None:
    checkpoint = open_checkpoint(odd)
    with ThreadPoolExecutor(3) as pool:
        store = open_store(str(tmp_path / "s"))
        found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Given(pool, 3), store=store)
    assert same(found, one_pass(checkpoint))
    # From the store alone.
    again = read_in_pieces(checkpoint, checkpoint.tensors, engine=_Nobody(), store=open_store(str(tmp_path / "s")))
    assert same(again, found)


class _Nobody(Inline):
    def submit(self, *_: object) -> object:  # type: ignore[override]
        raise AssertionError("asked again")


@pytest.mark.parametrize("most_nbytes", [1, 3000, 20_000, 1 << 30])
def test_pieces_of_any_size_of_any_tensors_are_one_pass(odd: Path, most_nbytes: int) -> None:
    checkpoint = open_checkpoint(odd)
    found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), most_nbytes=most_nbytes)
    assert same(found, one_pass(checkpoint))
    assert len(found.answers) < len(checkpoint.tensors)  # One pair is tied.


def test_what_is_cut_short_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves of two tiles here, so that the cut lies in a later piece than the first."""
    monkeypatch.setattr(plan, "LEAF", 2 * TILE)
    monkeypatch.setattr(row_sums, "LEAF", 2 * TILE)
    save_file({"w": np.ones((5 * TILE,), np.int8), "z": np.arange(9.0)}, tmp_path / "whole.safetensors")
    raw = (tmp_path / "whole.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(raw[: len(raw) - 2 * TILE])
    for name in ("whole", "cut"):
        checkpoint = open_checkpoint(tmp_path / f"{name}.safetensors")
        assert len(plan_pieces(checkpoint, checkpoint.tensors, most_nbytes=1)) == 4
        found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), most_nbytes=1)
        assert same(found, one_pass(checkpoint))
    assert any(isinstance(answer, str) for answer in found.answers.values())


@pytest.mark.parametrize("in_memory", [1 << 20, 0])
def test_health_of_pieces_is_the_health(tmp_path: Path, in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspector.giants.measure, "Spill", partial(Spill, in_memory))
    rng = np.random.default_rng(3)
    tensors = {f"layers.{n}.weight": rng.standard_normal((64, 64 + n)).astype(np.float32) for n in range(4)}
    tensors["layers.2.weight"][3, 4] = np.nan
    checkpoint = open_checkpoint(save_shards(tmp_path / "m", {"a": tensors, "b": {"head.weight": np.zeros((9, 9))}}))

    def in_pieces(checkpoint: Checkpoint, tensors: object, **more: object) -> Readings:
        return read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), most_nbytes=20_000)

    whole, apart = examine(checkpoint), examine(checkpoint, read=in_pieces)
    assert [finding.id for finding in whole.findings][:1] == ["non-finite"]
    assert apart.findings == whole.findings and apart.not_examined == whole.not_examined
    assert [one.table for one in apart.weights.tensors] == [one.table for one in whole.weights.tensors]
    if in_memory:
        assert repr(apart.weights.tensors) == repr(whole.weights.tensors)
    else:
        assert isinstance(apart.weights.tensors[0].table.counts, memoryview)


def test_a_piece_takes_its_own_shard_along_and_no_other(sharded: Path) -> None:
    checkpoint = open_checkpoint(sharded)
    pieces = plan_pieces(checkpoint, checkpoint.tensors, most_nbytes=8 << 20)
    shards = [{Path(path).name for path, _ in piece.item.known or ()} for piece in pieces]
    assert all(len(names) <= 1 for names in shards) and len(set().union(*shards)) == 3
    assert all(len(pickle.dumps(piece.item)) < 10_000 for piece in pieces)
    large = [one for piece in pieces for one in piece.item.stretches if one.numel is not None]
    assert [one.first for one in large] == [0, LEAF]
    assert len({piece.key for piece in pieces}) == len(pieces)


def test_what_travels_is_what_was_measured(odd: Path) -> None:
    checkpoint = open_checkpoint(odd)
    answers = list(one_pass(checkpoint).answers.values())
    assert repr(tuple(answers)) == repr(read(written(answers)))
    assert b"\n" not in written(answers)


def test_progress_counts_bytes_and_stops_within_a_piece(
    sharded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG", str(tmp_path))
    monkeypatch.setattr(inspector.giants.measure, "measure_piece", logged)
    checkpoint = open_checkpoint(sharded)
    told: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None, note: str) -> None:
        told.append((done, total))
        if done:
            raise Stopped

    with pytest.raises(Stopped):
        read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), most_nbytes=60_000, progress=progress)
    assert len(calls(tmp_path)) == 1
    assert 0 < told[-1][0] < (told[-1][1] or 0) == sum(tensor.nbytes for tensor in checkpoint.tensors)


def test_a_file_that_changed_is_said_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file({"w": np.ones(9, np.float32)}, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    store = open_store(str(tmp_path / "s"))

    def touching(item: plan.Item) -> object:
        os.utime(tmp_path / "a.safetensors", ns=(1, time.time_ns()))
        return measure_piece(item)

    monkeypatch.setattr(inspector.giants.measure, "measure_piece", touching)
    found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), store=store)
    assert list(found.answers.values()) == ["w: a.safetensors changed while it was read: ask again."]
    assert not store.blobs.names("results")
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(ReadError, match="not there any more"):
        read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline())


def test_a_worker_that_does_not_see_the_file_says_who(tmp_path: Path) -> None:
    save_file({"w": np.ones(9, np.float32)}, tmp_path / "a.safetensors")
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    (piece,) = plan_pieces(checkpoint, checkpoint.tensors)
    (tmp_path / "a.safetensors").unlink()
    outcome = measure_piece(pickle.loads(pickle.dumps(piece.item)))
    assert not outcome.kept
    (answer,) = read(outcome.data)
    assert isinstance(answer, str) and "a.safetensors" in answer


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_driver_killed_twice_repeats_what_was_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str, thorough: bool
) -> None:
    """Killed with its workers at a quarter and at half of 40 pieces; then what is missing is done."""
    if executor == "processes" and not thorough:
        pytest.skip("make thorough")
    rng = np.random.default_rng(1)
    tensors = {f"layers.{n:02}.weight": rng.standard_normal((64, 64)).astype(np.float32) for n in range(40)}
    save_file(tensors, tmp_path / "a.safetensors")
    log = tmp_path / "log"
    log.mkdir()
    arguments = [str(tmp_path / "a.safetensors"), str(tmp_path / "s"), "16384", executor]
    environment = {**os.environ, "LOG": str(log), "SLOWER": "0.04", "PYTHONPATH": str(ROOT)}
    for share in (10, 20):
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.giants.works", *arguments],
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )
        while _kept(tmp_path / "s") < share:
            assert driver.poll() is None
            time.sleep(0.01)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert _kept(tmp_path / "s") < 40
    assert not [path for path in (tmp_path / "s").rglob(".*") if path.stat().st_size and path.suffix == ".gz"]
    checkpoint = open_checkpoint(tmp_path / "a.safetensors")
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setattr(inspector.giants.measure, "measure_piece", logged)
    store = open_store(str(tmp_path / "s"))
    found = read_in_pieces(checkpoint, checkpoint.tensors, engine=Inline(), store=store, most_nbytes=16384)
    assert same(found, one_pass(checkpoint))
    done = calls(log)
    assert sorted({*done}) == sorted(f"{name}@0" for name in tensors)
    # Two kills, two workers: of each at most the piece that it had, and one whose result was on its way.
    assert 40 <= len(done) <= 40 + 2 * 2 * 2


def _kept(store: Path) -> int:
    return len(list((store / "results").glob("*.gz"))) if (store / "results").is_dir() else 0
