"""How fast and how lean are the statistics, beside separate passes in numpy and torch?

    python benchmarks/bench_weights.py [--megabytes 512] [--repeats 3]

One seeded file on disk, float32 and bfloat16 layers of many sizes, read by all in the same run: minimum, maximum,
mean, standard deviation, counts of NaN, infinity and zero, and a histogram of 128 bins per tensor. The right answer is
asserted after timing. Each way runs in its own process, for its own peak memory; one thread each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
BINS = 128
Answer = dict[str, tuple[float, ...]]


def make_file(folder: Path, megabytes: int) -> dict[str, Path]:
    """Two files of about the asked size: layers from 64 to 16 million elements, one with a NaN."""
    rng = np.random.default_rng(0)
    left, number = megabytes * 250_000, 0
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    sizes = ((4096, 4096), (2048, 2048), (512, 512, 3, 3), (1024,), (64,), (1000, 2048))
    while left > 0:
        shape = sizes[number % len(sizes)]
        values = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        if number == 3:
            values.reshape(-1)[17] = np.nan
        tensors[f"layers.{number}.weight"] = values
        left -= values.size
        number += 1
    paths = {"float32": folder / "float32.safetensors", "bfloat16": folder / "bfloat16.safetensors"}
    save_file(tensors, str(paths["float32"]))

    import torch
    from safetensors.torch import save_file as save_torch

    save_torch({k: torch.from_numpy(v).bfloat16() for k, v in tensors.items()}, str(paths["bfloat16"]))
    return paths


def ours(path: Path, workers: int = 1) -> Answer:
    from inspector.readers import open_checkpoint
    from inspector.weights.histogram import histogram
    from inspector.weights.measure import measure_weights

    report = measure_weights(open_checkpoint(path), workers=workers)
    assert not report.skipped
    return {
        s.name: (s.minimum, s.maximum, s.mean, s.std, s.nan, s.infinite, s.zero, *histogram(s, bins=BINS).counts)
        for s in report.tensors
    }


def ours_by_numpy(path: Path) -> Answer:
    os.environ["INSPECTOR_COMPILED"] = "0"
    return ours(path)


def ours_on_two(path: Path) -> Answer:
    return ours(path, workers=2)


def read_limit(path: Path) -> Answer:
    """The bytes through the processor once: nobody is faster."""

    with safe_open(str(path), framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - not a dict
            file.get_tensor(name).sum()
    return {}


def tensorboard_histograms(path: Path) -> Answer:
    """TensorBoard's histogram of each tensor, and nothing else."""
    from torch.utils.tensorboard._convert_np import make_np
    from torch.utils.tensorboard.summary import make_histogram

    # The bins of SummaryWriter: a tenth wider each, from 1e-12 to 1e20.
    steps = 1e-12 * 1.1 ** np.arange(774)
    bins = np.concatenate([-steps[::-1], [0.0], steps])
    with safe_open(str(path), framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - not a dict
            values = make_np(file.get_tensor(name).float())
            make_histogram(values.astype(float)[np.isfinite(values)], bins)
    return {}


def numpy_passes(path: Path) -> Answer:
    answer: Answer = {}
    with safe_open(str(path), framework="np") as file:
        for name in file.keys():  # noqa: SIM118 - not a dict
            values = file.get_tensor(name)
            if values.dtype != np.float32:
                values = values.astype(np.float32)
            nan, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
            if nan or infinite:
                values = values[np.isfinite(values)]
            counts, _ = np.histogram(values, bins=BINS)
            mean, std = values.mean(dtype=np.float64), values.std(dtype=np.float64)
            answer[name] = (values.min(), values.max(), mean, std, nan, infinite, int((values == 0).sum()), *counts)
    return {k: tuple(map(float, v)) for k, v in answer.items()}


def torch_passes(path: Path) -> Answer:
    import torch

    torch.set_num_threads(1)
    answer: Answer = {}
    with safe_open(str(path), framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - not a dict
            values = file.get_tensor(name).float()
            nan, infinite = int(values.isnan().sum()), int(values.isinf().sum())
            if nan or infinite:
                values = values[values.isfinite()]
            counts = torch.histc(values, bins=BINS)
            mean, std = values.double().mean(), values.double().std(correction=0)
            zero = int((values == 0).sum())
            answer[name] = (values.min(), values.max(), mean, std, nan, infinite, zero, *counts)
    return {k: tuple(map(float, v)) for k, v in answer.items()}


def make_shards(folder: Path, gigabytes: float) -> Path:
    """A folder of four safetensors files of that many bytes together, with their index; written one at a time."""
    rng = np.random.default_rng(1)
    made = folder / "sharded"
    made.mkdir()
    weight_map: dict[str, str] = {}
    for shard in range(1, 5):
        name = f"model-{shard:05}-of-00004.safetensors"
        tensors = {
            f"layers.{shard}.{n}.weight": rng.standard_normal((4096, 4096), dtype=np.float32)
            for n in range(max(1, round(gigabytes * 1e9 / 4 / (4096 * 4096 * 4))))
        }
        save_file(tensors, str(made / name))
        weight_map.update(dict.fromkeys(tensors, name))
    (made / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return made


WAYS: tuple[tuple[str, Callable[[Path], Answer], tuple[str, ...]], ...] = (
    ("model inspector, compiled", ours, ("float32", "bfloat16")),
    ("model inspector, compiled, two threads", ours_on_two, ("float32", "bfloat16")),
    ("model inspector, numpy alone", ours_by_numpy, ("float32", "bfloat16")),
    ("numpy, separate passes + np.histogram", numpy_passes, ("float32",)),
    ("torch, separate passes + histc", torch_passes, ("float32", "bfloat16")),
    ("TensorBoard's make_histogram alone", tensorboard_histograms, ("float32", "bfloat16")),
    ("read limit: torch.sum", read_limit, ("float32", "bfloat16")),
)


def run_one(index: int, path: Path) -> None:
    """In a child process: time one way and print one line of JSON."""
    _, way, _ = WAYS[index]
    # Imports are not the question, nor is the first touch of the file.
    from inspector.weights import kernel

    kernel.expect(1 << 30)
    with tempfile.TemporaryDirectory() as folder:
        # What is imported or fetched at the first call.
        tiny = Path(folder) / "tiny.safetensors"
        save_file({"w": np.ones((300, 400), np.float32), "h": np.ones((300, 400), np.float16)}, str(tiny))
        with contextlib.suppress(ModuleNotFoundError):
            way(tiny)
    for each in sorted(path.iterdir()) if path.is_dir() else [path]:
        with each.open("rb") as file:
            while file.read(1 << 20):
                pass
    start = memory_kb(reset=True)
    before = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.perf_counter()
    answer = way(path)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    grown = memory_kb() - start
    print(json.dumps({"wall": wall, "cpu": cpu, "peak_kb": grown, "answer": answer}))


def memory_kb(*, reset: bool = False) -> int:
    """The most memory resident so far, mapped pages of files included; reset: from now on. Linux counts it anew."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if reset:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def check(answer: Answer, truth: Answer, name: str) -> None:
    """Counts exactly, moments to 1e-6, histograms to 2 % of the peak."""
    assert answer.keys() == truth.keys()
    for key, right in truth.items():
        got = np.asarray(answer[key])
        want = np.asarray(right)
        np.testing.assert_array_equal(got[[0, 1, 4, 5, 6]], want[[0, 1, 4, 5, 6]], err_msg=f"{name} {key}")
        np.testing.assert_allclose(got[2:4], want[2:4], rtol=1e-6, atol=1e-9, err_msg=f"{name} {key}")
        if want[7:].sum() > 100_000:
            assert np.abs(got[7:] - want[7:]).max() <= 0.02 * want[7:].max(), (name, key)


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the statistics engine beside numpy and torch.")
    parser.add_argument("--megabytes", type=int, default=512, help="size of the float32 file")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many")
    parser.add_argument("--sharded", type=float, default=0.0, help="GB of a folder of shards, for its peak memory")
    parser.add_argument("--child", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        run_one(int(chosen.child[0]), Path(chosen.child[1]))
        return 0

    with tempfile.TemporaryDirectory() as folder:
        paths: dict[str, Path] = {}
        if chosen.sharded:
            paths["four shards, float32"] = make_shards(Path(folder), chosen.sharded)
        else:
            paths = make_file(Path(folder), chosen.megabytes)
        for dtype, path in paths.items():
            gigabytes = sum(p.stat().st_size for p in (path.iterdir() if path.is_dir() else [path])) / 1e9
            print(f"{dtype}: {gigabytes:.2f} GB, one thread, best of {chosen.repeats}")
            truth: Answer | None = None
            base = 0.0
            for index, (name, _, dtypes) in enumerate(WAYS):
                if dtype not in dtypes and not (path.is_dir() and index < 3):
                    continue
                runs = []
                for _ in range(chosen.repeats):
                    done = subprocess.run(
                        [sys.executable, __file__, "--child", str(index), str(path)],
                        capture_output=True,
                        text=True,
                        env={**os.environ, **ONE_THREAD},
                    )
                    if done.returncode:
                        break
                    runs.append(json.loads(done.stdout))
                if not runs:
                    print(f"  {name:40} not run: {done.stderr.strip().splitlines()[-1:]}")
                    continue
                best = min(runs, key=lambda r: r["cpu"])
                base = base or best["cpu"]
                print(
                    f"  {name:40} wall {min(r['wall'] for r in runs):6.2f} s  CPU {best['cpu']:6.2f} s  "
                    f"{gigabytes / best['cpu']:5.2f} GB per CPU s  x{best['cpu'] / base:4.1f} of ours  "
                    f"peak +{max(r['peak_kb'] for r in runs) / 1e3:6.0f} MB"
                )
                if truth is None:
                    truth = best["answer"]
                elif best["answer"]:
                    check(truth, best["answer"], name)
    print("all agree: counts and extremes exactly, moments to 1e-6, histogram bins to 2 % of the peak")
    return 0


if __name__ == "__main__":
    sys.exit(main())
