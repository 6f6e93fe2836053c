"""One giant and a million files, as far as one machine can tell: what was simulated is said beside each figure.

python -m benchmarks.bench_scale [headers] [giant] [pieces] [listing]
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from inspector.checkpoint.source import ByteSource, check_range
from inspector.checkpoint.types import TensorInfo
from inspector.giants.measure import read_in_pieces
from inspector.giants.plan import PIECE_NBYTES, Item, plan_pieces
from inspector.giants.work import measure_piece
from inspector.giants.written import written
from inspector.readers import open_checkpoint
from inspector.readers.opening import open_below
from inspector.sweep.engines import Inline, Threads
from inspector.sweep.piece import Outcome
from inspector.sweep.store import open_store
from inspector.weights.measure import measure_tensor, read_tensors
from inspector.weights.report import TensorStatistics

_SHARDS = 163
_SHARD_NBYTES = 8 << 30
_LATE_SECONDS = 0.05
_EXPERT = (2048, 7168)
_TABLE = (129_280, 7168)
_FILES = 1_000_000
# Shards whose answers are gathered.
_DRIVEN = 16


def main(names: list[str]) -> None:
    for name in names or [*_MEASURED]:
        # Each in a process of its own: the most memory that it took is its own.
        subprocess.run([sys.executable, "-m", "benchmarks.bench_scale", "--one", name], check=True)


def headers() -> None:
    """163 shards of a repository, each request 50 ms late, over a server in a process of its own that counts."""
    for each, what in ((7, "a dense network"), (280, "experts")):
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, each), daemon=True)
        server.start()
        os.environ["HF_ENDPOINT"] = ours.recv()
        began, cpu = time.perf_counter(), time.process_time()
        checkpoint = open_checkpoint("hf://lab/giant@main")
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        ours.send("done")
        requests, nbytes = ours.recv()
        assert len(checkpoint.tensors) == _SHARDS * each
        # The index of many tensors is larger than a first request.
        assert requests == 1 + 1 + (each > 100) + _SHARDS
        print(
            f"headers: {_SHARDS} shards, {len(checkpoint.tensors):,} tensors ({what}): {requests} requests (listing, "
            f"index, shards), {nbytes / 1e6:.1f} MB, {seconds:.2f} s at 50 ms a request, {cpu:.2f} of them ours; "
            f"{_memory()}"
        )
        server.join()


def _serve(pipe: Connection, each: int) -> None:
    from benchmarks.bench_addresses import _late, _sharded
    from tests.hub_serving import publish
    from tests.serving import serving

    with serving() as server:
        files = _sharded(_SHARDS, each, 4)
        del files["config.json"]
        publish(server, "lab/giant", files)
        _late(server)
        pipe.send(server.base)
        pipe.recv()
        pipe.send((len(server.log), server.sent))


class _Shard:
    """A real safetensors header, and behind it numbers from a pattern: normal ones, in bfloat16, never written."""

    def __init__(self, name: str, header: bytes, nbytes: int, pattern: bytes) -> None:
        self.name, self.size = name, len(header) + nbytes
        self._header, self._pattern = header, pattern

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        head = self._header[offset : offset + n]
        at = (offset + len(head) - len(self._header)) % len(self._pattern)
        left = n - len(head)
        if at + left <= len(self._pattern):
            return head + self._pattern[at : at + left]
        times = (at + left) // len(self._pattern) + 1
        return head + (self._pattern * times)[at : at + left]

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]

    def close(self) -> None:
        return None


class _Folder:
    """163 such shards and their index."""

    name, kind = "giant", "folder"

    def __init__(self) -> None:
        values = np.random.default_rng(0).standard_normal(2 << 20).astype(np.float32) * np.float32(0.02)
        pattern = (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        weight_map: dict[str, str] = {}
        self.sources: dict[str, ByteSource] = {}
        for number in range(_SHARDS):
            name = f"model-{number + 1:05}-of-{_SHARDS:05}.safetensors"
            shapes = dict(_tensors(number))
            header, nbytes = _header(shapes)
            weight_map |= dict.fromkeys(shapes, name)
            self.sources[name] = _Shard(name, header, nbytes, pattern)
        from inspector.checkpoint.source import BufferSource

        index = json.dumps({"weight_map": weight_map}).encode()
        self.sources["model.safetensors.index.json"] = BufferSource(index, "model.safetensors.index.json")

    def files(self) -> Mapping[str, int]:
        return {path: source.size for path, source in self.sources.items()}

    top = files

    def size_of(self, path: str) -> int | None:
        return self.sources[path].size if path in self.sources else None

    def open(self, path: str) -> ByteSource:
        return self.sources[path]

    def is_linked_out(self, path: str) -> bool:
        return False


def _tensors(shard: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Experts of 29 MB as in a network of 671e9 parameters; a table of words first and last."""
    left = _SHARD_NBYTES
    if shard in (0, _SHARDS - 1):
        yield ("model.embed_tokens.weight" if shard == 0 else "lm_head.weight"), _TABLE
        left -= 2 * math.prod(_TABLE)
    number = 0
    while left >= 2 * math.prod(_EXPERT) + 2 * 7168:
        yield f"model.layers.{shard}.mlp.experts.{number}.up_proj.weight", _EXPERT
        yield f"model.layers.{shard}.norms.{number}.weight", (7168,)
        left -= 2 * math.prod(_EXPERT) + 2 * 7168
        number += 1


def _header(shapes: Mapping[str, tuple[int, ...]]) -> tuple[bytes, int]:
    told: dict[str, object] = {}
    at = 0
    for name, shape in shapes.items():
        nbytes = 2 * math.prod(shape)
        told[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    text = json.dumps(told, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, at


def giant() -> None:
    """Planning and driving 1.4 TB: one piece of a hundred is worked on, of the others the answer is a copy."""
    folder = _Folder()
    began = time.perf_counter()
    checkpoint = open_below(folder)
    opened = time.perf_counter() - began
    nbytes = sum(tensor.nbytes for tensor in checkpoint.tensors)
    began = time.perf_counter()
    pieces = plan_pieces(checkpoint, checkpoint.tensors)
    planned = time.perf_counter() - began
    assert sum(piece.nbytes for piece in pieces) == nbytes and max(piece.nbytes for piece in pieces) <= PIECE_NBYTES
    print(
        f"giant: {nbytes / 1e12:.2f} TB, {len(checkpoint.tensors):,} tensors, {_SHARDS} shards (headers real, numbers "
        f"from a pattern): headers {opened:.2f} s, {len(pieces):,} pieces planned in {planned:.2f} s, largest "
        f"{max(piece.nbytes for piece in pieces) / 2**20:.0f} MiB; {_memory()}"
    )
    del pieces
    import inspector.giants.measure

    work = _Sampled()
    inspector.giants.measure.measure_piece = work
    first = {f"{number}/" for number in range(_DRIVEN)}
    chosen = [tensor for tensor in checkpoint.tensors if f"{(tensor.storage_id or '').partition('/')[0]}/" in first]
    before = _peak_mb()
    began = time.perf_counter()
    found = read_in_pieces(checkpoint, chosen, engine=Inline())
    seconds = time.perf_counter() - began
    held = (_peak_mb() - before) * 1e3 / len(found.answers)
    print(
        f"giant: the first {_DRIVEN} shards driven: {len(found.answers):,} answers; {work.real} pieces worked on "
        f"({work.real_nbytes / 1e9:.1f} GB at {work.real_nbytes / work.real_cpu / 1e9:.2f} GB a CPU second), "
        f"{work.stubbed:,} answered by copies; the driver's own {seconds - work.seconds:.1f} s; "
        f"{held:.0f} kB an answer; {_memory()}"
    )


class _Sampled:
    """measure_piece for every hundredth piece and for what is cut; else what such a piece gives, under its names."""

    def __init__(self) -> None:
        self.real = self.stubbed = self.real_nbytes = self._calls = 0
        self.real_cpu = self.seconds = 0.0
        self._known: dict[tuple[int, ...], TensorStatistics] = {}

    def __call__(self, item: Item) -> Outcome:
        began, cpu = time.perf_counter(), time.process_time()
        self._calls += 1
        if self._calls % 100 == 1 or any(one.numel is not None for one in item.stretches):
            outcome = measure_piece(item)
            self.real, self.real_cpu = self.real + 1, self.real_cpu + time.process_time() - cpu
            self.real_nbytes += sum(one.nbytes for one in item.stretches)
        else:
            outcome = Outcome(data=written([self._copy(item, one.tensor) for one in item.stretches]))
            self.stubbed += 1
        self.seconds += time.perf_counter() - began
        return outcome

    def _copy(self, item: Item, tensor: TensorInfo) -> TensorStatistics:
        if tensor.shape not in self._known:
            self._known[tensor.shape] = measure_tensor(item.checkpoint, tensor)
        return replace(self._known[tensor.shape], name=tensor.name, path=tensor.path)


def pieces() -> None:
    """A real file of 1 GB in bfloat16 by pieces, into a store: bytes a second, what is kept, and what a rerun costs."""
    # Not above: it takes hundreds of megabytes, which the other figures are not to have.
    import torch
    from safetensors.torch import save_file

    with tempfile.TemporaryDirectory() as place:
        values = torch.randn(2048, 2048, generator=torch.Generator().manual_seed(0)).bfloat16()
        save_file({f"layers.{n}.weight": values + 0 for n in range(128)}, Path(place) / "a.safetensors")
        checkpoint = open_checkpoint(Path(place) / "a.safetensors")
        nbytes = sum(tensor.nbytes for tensor in checkpoint.tensors)
        cpu = time.process_time()
        began = time.perf_counter()
        known = read_tensors(checkpoint, checkpoint.tensors)
        alone = time.perf_counter() - began
        rate = nbytes / (time.process_time() - cpu) / 1e9
        print(f"pieces: {nbytes / 1e9:.2f} GB in one pass: {nbytes / alone / 1e9:.2f} GB/s, {rate:.2f} GB a CPU second")
        for jobs in (1, 2):
            store = open_store(f"{place}/s{jobs}")
            engine = Threads(jobs)
            whole = partial(read_in_pieces, checkpoint, checkpoint.tensors, engine=engine, store=store)
            cpu = time.process_time()
            first, cpu = _timed(whole), time.process_time() - cpu
            began = time.perf_counter()
            assert repr(whole().answers) == repr(known.answers)
            again = time.perf_counter() - began
            engine.close(stop=False)
            kept = sum(path.stat().st_size for path in Path(f"{place}/s{jobs}").rglob("*.gz"))
            print(
                f"pieces: the same by {jobs} threads: {nbytes / first / 1e9:.2f} GB/s, {nbytes / cpu / 1e9:.2f} GB a "
                f"CPU second, {kept / 1e6:.2f} MB kept; again {again:.2f} s"
            )


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def listing() -> None:
    """A listing of 10^6 objects, planned as an audit plans it: units, keys, pieces, the plan that a store keeps."""
    from inspector.limits import DEFAULT_LIMITS
    from inspector.lint.audit import plan_lines
    from inspector.remote.buckets import BucketFile
    from inspector.survey.row import Reading
    from inspector.survey.survey import plan_places
    from inspector.survey.swept import facts_of
    from inspector.survey.unit_pieces import UnitPieces

    def listed() -> Iterator[BucketFile]:
        for n in range(_FILES):
            address = f"s3://zoo/owner{n // 1000}/model{n // 10}/file{n}.safetensors"
            yield BucketFile(address=address, size=1_000_000_000 + n, said=f"ETag\0{n:032x}")

    began = time.perf_counter()
    remote = tuple(listed())
    made, held = time.perf_counter() - began, _peak_mb()
    began = time.process_time()
    plan = plan_places((), DEFAULT_LIMITS, remote=remote)
    found = UnitPieces(plan.units, facts_of(Reading()))
    seconds = time.process_time() - began
    print(
        f"listing: {_FILES:,} files (made up in {made:.0f} s, {held:.0f} MB): {len(found):,} pieces planned in "
        f"{seconds:.1f} s of a processor; {_memory()}"
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        place = open_store(folder).put_named("plans", "bench", plan_lines(plan, found))
        seconds = time.process_time() - began
        nbytes = (Path(folder) / place).stat().st_size
    print(f"listing: the plan in a store: {nbytes / 1e6:.0f} MB in {seconds:.1f} s of a processor; {_memory()}")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _memory() -> str:
    return f"peak {_peak_mb():,.0f} MB"


_MEASURED = {"headers": headers, "giant": giant, "pieces": pieces, "listing": listing}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _MEASURED[sys.argv[2]]()
    else:
        main(sys.argv[1:])
