"""A fleet of small checkpoints, by an audit and by what people use otherwise: seconds, requests, bytes, what was lost.

python -m benchmarks.bench_fleet [files] [disk] [lost] [network]

The others are installed beside, as far as they are wanted: picklescan, modelscan, fsspec with aiohttp, huggingface_hub.
What is not there is passed over and said.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from inspector.readers import open_checkpoint
from inspector.sweep.engines import Processes
from inspector.sweep.piece import Outcome, Piece
from inspector.sweep.run import sweep
from tests.hub_serving import publish
from tests.serving import Handler, serving

_FILES = 1000
# Each file some 0.6 MB: a header is a fraction of it, as in a real one, and a thousand fit on a small disk.
_TENSORS, _ELEMENTS = 40, 3800
_REPOSITORY, _SAFE = "org/fleet", "org/safe"
# A server that counts holds all of them in memory; a pool loses the same share of any number.
_MOST_SERVED = 1000


def main(count: int, parts: Sequence[str]) -> None:
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors, {count:,} files")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "fleet"
        names = make_fleet(root, count)
        nbytes = sum((root / name).stat().st_size for name in names)
        print(f"{nbytes / 1e6:,.0f} MB: a third zips of torch.save, a third safetensors, a third plain pickles\n")
        if "disk" in parts:
            on_disk(root, Path(folder))
        if "lost" in parts:
            lost_ones(root, names[:_MOST_SERVED])
        if "network" in parts:
            some = names[:_MOST_SERVED]
            with server(root, some) as asking:
                over_a_network(asking, some, Path(folder))


def make_fleet(root: Path, count: int) -> list[str]:
    """A third of each format, every file with other bytes."""
    root.mkdir(parents=True)
    rng = np.random.default_rng(0)
    state = {f"layers.{n}.weight": rng.standard_normal(_ELEMENTS, np.float32) for n in range(_TENSORS)}
    names = []
    for number in range(count):
        state["layers.0.weight"][0] = number
        name = f"{number:05}" + (".pth", ".safetensors", ".pt")[number % 3]
        if name.endswith(".safetensors"):
            save_file(state, root / name)
        else:
            tensors = {key: torch.from_numpy(value) for key, value in state.items()}
            torch.save(tensors, root / name, _use_new_zipfile_serialization=name.endswith(".pth"))
        names.append(name)
    return names


def on_disk(root: Path, beside: Path) -> None:
    """Whole programs, as a person starts them."""
    audit = [sys.executable, "-m", "inspector", "audit", str(root), "--store", str(beside / "store"), "--headers"]
    told("inspector audit --headers", timed([*audit, "--jobs", "2"]))
    told("the same again", timed([*audit, "--jobs", "2"]))
    shutil.rmtree(beside / "store")
    for name, line in (
        ("picklescan", [sys.executable, "-m", "picklescan.cli", "-p", str(root)]),
        ("modelscan", [str(Path(sys.executable).with_name("modelscan")), "-p", str(root)]),
    ):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed")
            continue
        took = timed(line)
        said = [text for text in took.out.splitlines() if "canned" in text or "kipped" in text]
        told(name, took, "; ".join(said[:3]))


def lost_ones(root: Path, names: Sequence[str]) -> None:
    """One file in a thousand ends its reader: rows that are missing at the end."""
    fatal = names[len(names) // 3]
    began = time.perf_counter()
    rows = 0
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            futures = [pool.submit(header, (str(root / name), fatal)) for name in names]
            for future in as_completed(futures):
                rows += future.exception() is None
        except BrokenProcessPool:
            pass
    seconds = time.perf_counter() - began
    print(f"\na plain ProcessPoolExecutor, one file ends its process: {rows:,} of {len(names):,} rows, {seconds:.1f} s")
    began = time.perf_counter()
    engine = Processes(2)
    pieces = [Piece(item=(str(root / name), fatal), nbytes=1) for name in names]
    found = [outcome.data for _, outcome in sweep("headers", pieces, header, lost=_lost, engine=engine)]
    engine.close(stop=False)
    seconds = time.perf_counter() - began
    print(f"the sweep of an audit: {len(found) - found.count(b'lost'):,} rows and "
          f"{found.count(b'lost')} that says so, {seconds:.1f} s\n")  # fmt: skip


def header(item: tuple[str, str]) -> Outcome:
    """What a worker does."""
    place, fatal = item
    if place.endswith(fatal):
        os._exit(9)
    with_tensors = open_checkpoint(place)
    count = len(with_tensors.tensors)
    with_tensors.source.close()
    return Outcome(data=b"%d" % count)


def _lost(_item: tuple[str, str], _why: str) -> Outcome:
    return Outcome(data=b"lost", kept=False)


def over_a_network(asking: Server, names: Sequence[str], beside: Path) -> None:
    """Headers alone, from a server on this machine that counts; each request 20 ms late."""
    zips = [name for name in names if name.endswith(".pth")]
    safe = [name for name in names if name.endswith(".safetensors")]
    plain = [name for name in names if name.endswith(".pt")]
    for what, some in (("torch zips", zips), ("safetensors", safe), ("plain pickles", plain)):
        listed = beside / f"{what}.txt"
        listed.write_text("".join(f"{asking.base}/{name}\n" for name in some))
        audit = [sys.executable, "-m", "inspector", "audit", "--from", str(listed), "--headers", "--store"]
        for times in ("", " again"):
            with asking.counted(f"inspector audit --headers, {what}{times}", len(some)):
                timed([*audit, str(beside / what), "--executor", "threads", "--jobs", "16"])
    # As the others ask for it: what a listing says of a file is not asked of the file itself.
    hub = [sys.executable, "-m", "inspector", "audit", f"hf://{_SAFE}", "--headers", "--store", str(beside / "hub")]
    with asking.counted("inspector audit --headers, safetensors by a listing", len(safe)):
        timed([*hub, "--executor", "threads", "--jobs", "16"], env={"HF_ENDPOINT": asking.base})
    if importlib.util.find_spec("fsspec") and importlib.util.find_spec("aiohttp"):
        import fsspec

        with asking.counted("fsspec.open and zipfile, torch zips", len(zips)):
            for name in zips:
                with fsspec.open(f"{asking.base}/{name}") as file, zipfile.ZipFile(file) as archive:
                    archive.read(next(one for one in archive.namelist() if one.endswith("data.pkl")))
        with asking.counted("fsspec.open and json, safetensors", len(safe)):
            for name in safe:
                with fsspec.open(f"{asking.base}/{name}") as file:
                    json.loads(file.read(int.from_bytes(file.read(8), "little")))
    else:
        print("fsspec's http needs aiohttp, which is not installed")
    if importlib.util.find_spec("huggingface_hub"):
        line = [sys.executable, "-m", "benchmarks.bench_fleet", "--hub", asking.base, *safe]
        with asking.counted("huggingface_hub's parse_safetensors_file_metadata", len(safe)):
            timed(line, env={"HF_ENDPOINT": asking.base, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1"})
    else:
        print("huggingface_hub is not installed")


def by_hub(names: Sequence[str]) -> None:
    """In a process of its own: it reads where the hub is when it is imported."""
    from huggingface_hub import HfApi

    api = HfApi()
    for name in names:
        api.parse_safetensors_file_metadata(_REPOSITORY, name)


@dataclass(frozen=True, slots=True)
class Took:
    seconds: float
    cpu: float
    out: str
    code: int


def timed(line: Sequence[str], env: dict[str, str] | None = None) -> Took:
    """Of a whole program: seconds, and of the processors."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **(env or {})}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 1):
        print(f"ended with {done.returncode}: {done.stderr[-600:]}")
    return Took(time.perf_counter() - began, cpu, done.stdout + done.stderr, done.returncode)


def told(name: str, took: Took, more: str = "") -> None:
    print(f"{name:48} {took.seconds:7.1f} s, {took.cpu:6.1f} s of processor, ended with {took.code}  {more}")


class Server:
    """The server's process. base: where it is asked."""

    def __init__(self, base: str, pipe: Connection) -> None:
        self.base, self._pipe = base, pipe

    @contextmanager
    def counted(self, name: str, files: int) -> Iterator[None]:
        """Print what the block asked of it."""
        self._ask()
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        requests, sent = self._ask()
        print(f"{name:52} {requests / files:5.2f} requests and {sent / files / 1000:7.1f} kB a file, {seconds:6.1f} s")

    def _ask(self) -> tuple[int, int]:
        self._pipe.send("counts")
        requests, sent = self._pipe.recv()
        return requests, sent


@contextmanager
def server(root: Path, names: Sequence[str]) -> Iterator[Server]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, root, names), daemon=True)
    process.start()
    try:
        yield Server(ours.recv(), ours)
    finally:
        process.terminate()


def _serve(pipe: Connection, root: Path, names: Sequence[str]) -> None:
    def late(method: Callable[[Any], None]) -> Callable[[Any], None]:
        def answer(handler: Any) -> None:
            time.sleep(0.02)
            method(handler)

        return answer

    def head(handler: Handler) -> None:
        path = handler.path.partition("?")[0]
        handler.told.log.append(handler.path)  # type: ignore[arg-type]
        body = handler.told.files.get(path)
        handler.send_response(200 if body is not None else 404)
        handler.send_header("Content-Length", str(len(body or b"")))
        handler.send_header("Accept-Ranges", "bytes")
        handler.end_headers()

    Handler.do_GET = late(Handler.do_GET)  # type: ignore[method-assign]
    Handler.do_HEAD = late(head)  # type: ignore[attr-defined]
    with serving() as told_by:
        files = {name: (root / name).read_bytes() for name in names}
        told_by.files |= {f"/{name}": data for name, data in files.items()}
        publish(told_by, _REPOSITORY, files)
        publish(told_by, _SAFE, {name: data for name, data in files.items() if name.endswith(".safetensors")})
        told_by.files |= {f"/{_REPOSITORY}/resolve/main/{name}": data for name, data in files.items()}
        pipe.send(told_by.base)
        while pipe.recv():
            pipe.send((len(told_by.log), told_by.sent))
            told_by.log.clear()
            told_by.sent = 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hub"]:
        by_hub(sys.argv[3:])
    else:
        given = sys.argv[1:]
        main(
            int(next((one for one in given if one.isdigit()), _FILES)),
            [one for one in given if not one.isdigit()] or ["disk", "lost", "network"],
        )
