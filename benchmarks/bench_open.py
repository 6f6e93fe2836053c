"""How fast and how lean is opening a file, beside torch's own ways to the same names, shapes and dtypes?

    python benchmarks/bench_open.py [--megabytes 2048] [--repeats 3]

Two files, each as zip, legacy and safetensors: 200 large tensors, and 20,000 small ones. Every way runs in a process
of its own. Work is CPU seconds without imports, wall is seconds with them; "over" is the peak memory beyond that of
`python -c pass`. After timing, a digest of all (name, shape, dtype) must be the one that the file was made with. The
files have just been written, so their pages are in the file cache; a full load reads all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Entry = tuple[str, tuple[int, ...], str]


def digest(entries: Iterable[Entry]) -> str:
    text = json.dumps(sorted([name, list(shape), dtype.removeprefix("torch.")] for name, shape, dtype in entries))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _own(path: str) -> tuple[float, str]:
    from inspector.readers import open_checkpoint

    start = time.process_time()
    checkpoint = open_checkpoint(path)
    seconds = time.process_time() - start
    return seconds, digest((t.name, t.shape, t.dtype) for t in checkpoint.tensors)


def _torch(**options: object) -> Callable[[str], tuple[float, str]]:
    def run(path: str) -> tuple[float, str]:
        import torch

        start = time.process_time()
        state = torch.load(path, weights_only=True, **options)
        seconds = time.process_time() - start
        return seconds, digest((k, tuple(v.shape), str(v.dtype)) for k, v in state.items())

    return run


def _fake(path: str) -> tuple[float, str]:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    start = time.process_time()
    with FakeTensorMode():
        state = torch.load(path, weights_only=True)
    return time.process_time() - start, digest((k, tuple(v.shape), str(v.dtype)) for k, v in state.items())


def _skip_data(path: str) -> tuple[float, str]:
    import torch

    start = time.process_time()
    with torch.serialization.skip_data():
        state = torch.load(path, weights_only=True)
    return time.process_time() - start, digest((k, tuple(v.shape), str(v.dtype)) for k, v in state.items())


def _load_file(path: str) -> tuple[float, str]:
    from safetensors.torch import load_file

    start = time.process_time()
    state = load_file(path)
    total = sum(float(v.flatten()[-1]) for v in state.values())  # Mapped pages count once something reads them.
    assert total >= 0
    return time.process_time() - start, digest((k, tuple(v.shape), str(v.dtype)) for k, v in state.items())


def _safe_open(path: str) -> tuple[float, str]:
    import torch  # noqa: F401 - what a user of safetensors has loaded; its import is not in the seconds of the work
    from safetensors import safe_open

    names = {"F16": "float16", "F32": "float32"}
    start = time.process_time()
    with safe_open(path, framework="pt") as file:
        slices = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118
        found = [(key, tuple(s.get_shape()), names[s.get_dtype()]) for key, s in slices.items()]
    return time.process_time() - start, digest(found)


WAYS: dict[str, tuple[tuple[str, ...], Callable[[str], tuple[float, str]]]] = {
    "open_checkpoint": (("zip", "legacy", "safetensors"), _own),
    "torch.load": (("zip", "legacy"), _torch()),
    "torch.load(mmap=True)": (("zip",), _torch(mmap=True)),
    'torch.load(map_location="meta")': (("zip", "legacy"), _torch(map_location="meta")),
    "torch.load, FakeTensorMode": (("zip",), _fake),
    "torch.load, skip_data": (("zip",), _skip_data),
    "safetensors.safe_open": (("safetensors",), _safe_open),
    "safetensors.load_file": (("safetensors",), _load_file),
}


def make_files(folder: Path, megabytes: int) -> dict[str, tuple[dict[str, Path], str]]:
    """Seeded files in three containers, and the digest of what is in them."""
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    side = int((megabytes * 1e6 / 200 / 2) ** 0.5)
    cases = {
        "200 large": {f"layers.{i}.weight": torch.zeros(side, side, dtype=torch.float16) for i in range(200)},
        "20,000 small": {f"blocks.{i // 4}.part{i % 4}.weight": torch.full((4, 5), float(i)) for i in range(20_000)},
    }
    made: dict[str, tuple[dict[str, Path], str]] = {}
    for number, (case, state) in enumerate(cases.items()):
        paths = {kind: folder / f"{number}.{kind}" for kind in ("zip", "legacy", "safetensors")}
        torch.save(state, paths["zip"])
        torch.save(state, paths["legacy"], _use_new_zipfile_serialization=False)
        save_file(state, paths["safetensors"])
        made[case] = (paths, digest((k, tuple(v.shape), str(v.dtype)) for k, v in state.items()))
        state.clear()
    return made


def child(way: str, path: str) -> None:
    begun = time.perf_counter()
    seconds, answer = WAYS[way][1](path)
    # VmHWM and not ru_maxrss: the latter remembers the parent's memory from before exec.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"work": seconds, "wall": time.perf_counter() - begun, "peak_mb": peak, "answer": answer}))


def measure(way: str, path: Path, repeats: int, expected: str) -> tuple[float, float, float]:
    """Medians of (seconds of the work, seconds with imports, peak MB). Raises RuntimeError when the way fails."""
    runs = []
    for _ in range(repeats):
        command = [sys.executable, __file__, "--child", way, str(path)]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(Path(__file__).parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
        run = json.loads(done.stdout)
        assert run["answer"] == expected, f"{way} read something else from {path.name}"
        runs.append(run)
    work, wall, peak = (statistics.median(r[key] for r in runs) for key in ("work", "wall", "peak_mb"))
    return work, wall, peak


def bare_megabytes() -> float:
    """Peak memory of the interpreter alone."""
    code = 'print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=2048, help="of the 200 large tensors")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    bare = bare_megabytes()
    print(f"{bare:.0f} MB for the interpreter alone")
    print(f"{'tensors':13} {'container':12} {'way':32} {'work s':>8} {'wall s':>8} {'over MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for case, (paths, expected) in make_files(Path(folder), arguments.megabytes).items():
            for way, (kinds, _) in WAYS.items():
                for kind in kinds:
                    try:
                        work, wall, peak = measure(way, paths[kind], arguments.repeats, expected)
                    except RuntimeError as error:
                        print(f"{case:13} {kind:12} {way:32} fails: {str(error)[:80]}", flush=True)
                        continue
                    print(f"{case:13} {kind:12} {way:32} {work:8.3f} {wall:8.2f} {peak - bare:8.1f}", flush=True)


if __name__ == "__main__":
    main()
