"""How fast and how lean is a comparison, beside separate passes in numpy, a plain script, and git-theta's own test?

    python benchmarks/bench_diff.py [--megabytes 512] [--repeats 3]

Two seeded files in the page cache: a float32 pair and a bfloat16 pair that changed, a pair that is the same, and a
float32 file beside its bfloat16 cast. Each way runs in a process of its own, one thread, in turn; GB/s are bytes of
both files over the processor's time, which other programs of the machine disturb least, and over the clock's. The
answers are asserted equal after timing. git-theta is asked for its equality test alone (its hash of each tensor), where
it is installed: `pip install --no-deps git-theta tensorstore`, with what its import asks for.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SHAPES = ((4096, 1024), (1024, 1024), (512, 512, 3, 3), (1024,), (64,), (1000, 2048))
Answer = dict[str, tuple[float, ...]]


def make_pairs(folder: Path, megabytes: int) -> None:
    """In a process of its own: what is forked from a large one is counted as large."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    tensors: dict[str, torch.Tensor] = {}
    left = megabytes * 250_000
    while left > 0:
        shape = SHAPES[len(tensors) % len(SHAPES)]
        tensors[f"layers.{len(tensors)}.weight"] = torch.randn(shape) * 0.02
        left -= math.prod(shape)
    moved = {name: value + 0.001 * torch.randn_like(value) for name, value in tensors.items()}
    paths = {name: str(folder / f"{name}.safetensors") for name in ("a", "b", "same", "half", "half_b")}
    for side in (1, 2):
        small = {str(kind): torch.full((4096,), side).to(kind) for kind in (torch.float32, torch.bfloat16)}
        save_file(small, str(folder / f"small_{' ab'[side]}.safetensors"))
    save_file(tensors, paths["a"])
    save_file(moved, paths["b"])
    save_file(tensors, paths["same"])
    save_file({name: value.bfloat16() for name, value in tensors.items()}, paths["half"])
    save_file({name: value.bfloat16() for name, value in moved.items()}, paths["half_b"])


def pairs_in(folder: Path) -> dict[str, tuple[str, str]]:
    a, b, same, half, half_b = (str(folder / f"{n}.safetensors") for n in ("a", "b", "same", "half", "half_b"))
    return {
        "float32, changed": (a, b),
        "bfloat16, changed": (half, half_b),
        "the same": (a, same),
        "float32 and its bfloat16": (a, half),
    }


def ours(a: str, b: str) -> Answer:
    os.environ.setdefault("INSPECTOR_COMPILED", "1")
    from inspector.compare.diff import compare_checkpoints
    from inspector.readers import open_checkpoint

    found = compare_checkpoints(open_checkpoint(a), open_checkpoint(b))
    return {
        t.name: (n.equal, n.largest.index if n.largest else -1, n.square_delta, n.square_a, n.dot)
        for t in found.tensors
        if (n := t.numbers) is not None
    }


def ours_by_numpy(a: str, b: str) -> Answer:
    os.environ["INSPECTOR_COMPILED"] = "0"
    return ours(a, b)


def pairs_of(a: str, b: str) -> Iterator[tuple[str, Any, Any]]:
    from safetensors import safe_open

    with safe_open(a, "pt") as one, safe_open(b, "pt") as two:
        for name in one.keys():  # noqa: SIM118 - no mapping
            yield name, one.get_tensor(name), two.get_tensor(name)


def separate_passes(a: str, b: str) -> Answer:
    """Fast and loose: float32 sums, a tensor in memory, what one writes by hand for speed."""
    found: Answer = {}
    for name, one, two in pairs_of(a, b):
        x, y = one.float().numpy().reshape(-1), two.float().numpy().reshape(-1)
        if np.array_equal(x, y):
            continue
        apart = y - x
        at = int(np.abs(apart).argmax())
        sums = (float(np.dot(apart, apart)), float(np.dot(x, x)), float(np.dot(x, y)))
        found[name] = (int(np.count_nonzero(x == y)), at, *sums)
    return found


def plain_script(a: str, b: str) -> Answer:
    """float64 passes with the same answers: equal counts, the largest change, sums, cosine."""
    found: Answer = {}
    for name, one, two in pairs_of(a, b):
        x, y = one.double().numpy().reshape(-1), two.double().numpy().reshape(-1)
        if np.array_equal(x, y):
            continue
        apart = y - x
        at = int(np.abs(apart).argmax())
        sums = (float((apart * apart).sum()), float((x * x).sum()), float((x * y).sum()))
        found[name] = (int((x == y).sum()), at, *sums)
    return found


def torch_script(a: str, b: str) -> Answer:
    """What people paste: allclose and the largest difference of each key, both state dicts in memory."""
    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(1)
    one, two = load_file(a), load_file(b)
    for name in one:
        x, y = one[name].float(), two[name].float()
        if not torch.equal(x, y):
            torch.allclose(x, y)
            (x - y).abs().max().item()
            torch.nn.functional.cosine_similarity(x.flatten(), y.flatten(), dim=0).item()
    return {}


def git_theta(a: str, b: str) -> Answer:
    """Its test whether a parameter group is unchanged: a locality-sensitive hash of each side, and their distance."""
    from git_theta.lsh.euclidean_lsh import get_lsh

    hasher = get_lsh()
    for _, one, two in pairs_of(a, b):
        hasher.distance(*(hasher.hash(each.float().numpy()) for each in (one, two)))
    return {}


WAYS: dict[str, Callable[[str, str], Answer]] = {
    "inspector diff, compiled": ours,
    "inspector diff, numpy": ours_by_numpy,
    "separate passes, float32 sums": separate_passes,
    "plain script, float64": plain_script,
    "torch: allclose, max, cosine": torch_script,
    "git-theta: its equality test": git_theta,
}


def child(way: str, a: str, b: str) -> None:
    # What is imported and compiled is fetched before.
    WAYS[way](*(str(Path(a).with_name(f"small_{side}.safetensors")) for side in "ab"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    processor, clock = time.process_time(), time.perf_counter()
    found = WAYS[way](a, b)
    took = (time.process_time() - processor, time.perf_counter() - clock)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"took": took, "peak": peak, "before": before, "found": found}))


def run_way(way: str, pair: tuple[str, str]) -> dict[str, Any] | None:
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    words = [sys.executable, __file__, "--child", way, *pair]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{way:32} not run: {done.stderr.strip().splitlines()[-1][:90]}")
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--make")
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    if given.make:
        make_pairs(Path(given.make), given.megabytes)
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, "--make", folder, "--megabytes", str(given.megabytes)], check=True)
        for label, pair in pairs_in(Path(folder)).items():
            nbytes = sum(Path(path).stat().st_size for path in pair)
            print(f"\n{label}: {nbytes / 1e6:,.0f} MB in both\n{'':32} GB/s of processor, of clock, MB that it took")
            answers: dict[str, Answer] = {}
            for way in WAYS:
                runs = [run_way(way, pair) for _ in range(given.repeats)]
                held = [one for one in runs if one is not None]
                if not held:
                    continue
                processor, clock = (min(one["took"][i] for one in held) for i in (0, 1))
                speeds = f"{nbytes / processor / 1e9:6.2f} {nbytes / clock / 1e9:6.2f}"
                print(f"{way:32} {speeds} {(held[0]['peak'] - held[0]['before']) / 1e3:6,.0f}", flush=True)
                answers[way] = held[0]["found"]
            check(answers)


def check(answers: dict[str, Answer]) -> None:
    """Ours to the last bit of each other; counts and places of the script exactly, its sums nearly."""
    compiled, numpy_, script = (answers[way] for way in (*list(WAYS)[:2], "plain script, float64"))
    assert compiled == numpy_
    for name, (equal, at, *sums) in script.items():
        own = compiled[name]
        assert own[:2] == [equal, at], name
        assert all(abs(x - y) <= 1e-9 * sums[1] for x, y in zip(own[2:], sums, strict=True)), name


if __name__ == "__main__":
    main()
