"""How much memory and time does writing a file anew take, beside torch.load + torch.save and safetensors' save_file?

    python benchmarks/bench_export.py [--megabytes 2000] [--tensors 100]

One file of seeded float32 tensors, written anew as zip, safetensors, legacy file and shards, each way in a process of
its own (Linux). Seconds are without imports; memory is the peak beyond that of a process that has imported the same.
Ours also reads everything back twice, compares it bit for bit with the source and takes the sha256 of what it wrote;
the others only write. After timing, every written file is opened by the format's own library and must be the source's,
bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _ours(writer: str, shard_nbytes: int | None = None) -> Callable[[Path, Path], None]:
    def run(source: Path, out: Path) -> None:
        from inspector.exports.convert import export_as_is
        from inspector.readers import open_checkpoint

        checkpoint = open_checkpoint(source)
        assert checkpoint.weights is not None
        export_as_is(checkpoint, checkpoint.weights, out, writer=writer, shard_nbytes=shard_nbytes)

    return run


def _repair(source: Path, out: Path) -> None:
    from inspector.architectures.types import Target, TargetKind, TargetTensor
    from inspector.exports.export import export_repaired
    from inspector.keys.diagnose import diagnose
    from inspector.readers import open_checkpoint

    checkpoint = open_checkpoint(source)
    assert checkpoint.weights is not None
    tensors = tuple(TargetTensor(name=t.name, shape=t.shape) for t in checkpoint.weights.tensors)
    target = Target(label="the same", kind=TargetKind.FILE, tensors=tensors)
    plan = diagnose(checkpoint, target).plan
    assert plan is not None
    export_repaired(checkpoint, plan, target, out)


def _torch(**options: bool) -> Callable[[Path, Path], None]:
    def run(source: Path, out: Path) -> None:
        import torch

        state = torch.load(source, weights_only=True)
        torch.save(state, out, **options)

    return run


def _save_file(source: Path, out: Path) -> None:
    import torch
    from safetensors.torch import save_file

    save_file(torch.load(source, weights_only=True), out)


WAYS: dict[str, Callable[[Path, Path], None]] = {
    "zip: convert": _ours("pth"),
    "zip: repair": _repair,
    "zip: torch.load, torch.save": _torch(),
    "safetensors: convert": _ours("safetensors"),
    "safetensors: torch.load, save_file": _save_file,
    "safetensors: convert, shards of 500 MB": _ours("safetensors", 500_000_000),
    "legacy: convert": _ours("pth-legacy"),
    "legacy: torch.load, torch.save": _torch(_use_new_zipfile_serialization=False),
}


def _peak_mb() -> float:
    """Of this process alone: getrusage's figure begins at that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def run_one(way: str, source: Path, out: Path) -> None:
    import safetensors.torch  # noqa: F401 - the imports of either side, before the first figure
    import torch  # noqa: F401

    import inspector.exports.convert
    import inspector.exports.export
    import inspector.keys.diagnose
    import inspector.readers  # noqa: F401

    before, cpu, wall = _peak_mb(), time.process_time(), time.perf_counter()
    WAYS[way](source, out)
    seconds, elapsed = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps({"over": _peak_mb() - before, "cpu": seconds, "wall": elapsed}))


def assert_same(source: Path, out: Path) -> None:
    """Every tensor of the written files, by the format's own library, against the source's."""
    import torch
    from safetensors.torch import load_file

    wanted = torch.load(source, weights_only=True, mmap=True)
    seen = 0
    for path in sorted(out.iterdir()) if out.is_dir() else [out]:
        if path.suffix == ".json":
            continue
        with path.open("rb") as file:
            torch_file = file.read(2) in (b"PK", b"\x80\x02")
        state = torch.load(path, weights_only=True) if torch_file else load_file(path)
        for name, tensor in state.items():
            assert torch.equal(tensor, wanted[name]), name
        seen += len(state)
    assert seen == len(wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--tensors", type=int, default=100)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run_one(arguments.run[0], Path(arguments.run[1]), Path(arguments.run[2]))
        return
    import torch

    folder = Path(tempfile.mkdtemp())
    try:
        source = folder / "source.pth"
        torch.manual_seed(0)
        numel = arguments.megabytes * 250_000 // arguments.tensors
        torch.save({f"layer{n}.weight": torch.randn(numel) for n in range(arguments.tensors)}, source)
        print(f"{arguments.tensors} tensors of {numel * 4 / 1e6:.1f} MB")
        print("| way | memory over imports | CPU s | wall s |\n| --- | --- | --- | --- |")
        for way in WAYS:
            out = folder / "out"
            command = [sys.executable, __file__, "--run", way, str(source), str(out)]
            root = str(Path(__file__).resolve().parents[1])
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": root},
            )
            found = json.loads(done.stdout.splitlines()[-1])
            assert_same(source, out)
            print(f"| {way} | {found['over']:,.0f} MB | {found['cpu']:.1f} | {found['wall']:.1f} |", flush=True)
            shutil.rmtree(out) if out.is_dir() else out.unlink()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
