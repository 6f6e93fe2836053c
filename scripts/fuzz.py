"""Throw damaged and spliced checkpoints at the readers, and say whatever is neither a checkpoint nor our own error.

    python scripts/fuzz.py [--executions 100000] [--seconds 0] [--seed 0]

Every mutant is opened, its tensors are read and its tree is walked. A bug is: any exception that is no InspectorError,
more than ten seconds, or a marker file that a payload made. The mutant is then written to fuzz-<n>.bin beside a
traceback and the exit status is 1.
"""

from __future__ import annotations

import argparse
import io
import os
import pickle
import random
import sys
import tempfile
import time
import traceback
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.checkpoint.values import Value
from inspector.errors import InspectorError
from inspector.limits import Limits
from inspector.readers import open_checkpoint

SLOW_SECONDS = 10.0
# Small limits, so that a mutant which runs into one ends soon; the code is the same.
LIMITS = Limits(opcodes=200_000, inflated_nbytes=1 << 24, text_nbytes=1 << 22, nodes=20_000, tensors=20_000)
OPCODES = (
    b"(.012FIJKLMNPQRSTUVXabcdeghijlopqrstu)}]\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
    + bytes(range(0x90, 0x99))
)


class Payload:
    """Would make the marker if a mutant were unpickled for real."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return (os.system, (f"touch {self.marker}",))


def samples(marker: str) -> list[bytes]:
    """Small files of every kind the readers know, made with torch, numpy and pickle."""
    import numpy as np
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2))
    optimizer = torch.optim.Adam(net.parameters())
    base = torch.arange(24.0)
    values: list[object] = [
        net,
        net.state_dict(),
        {"state_dict": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
        OrderedDict(a=base.view(4, 6).t(), b=base[3:9], c=torch.eye(3).to_sparse(), d=torch.zeros(2, device="meta")),
        [torch.ones(2, dtype=torch.bfloat16), torch.ones(2).to(torch.float8_e4m3fn), None, 1.5, {1, 2}, b"x" * 40],
        {"w": np.arange(6.0).reshape(2, 3), "s": np.float32(2), "evil": Payload(marker)},
    ]
    made: list[bytes] = []
    for value in values:
        for legacy in (False, True):
            buffer = io.BytesIO()
            torch.save(value, buffer, _use_new_zipfile_serialization=not legacy)
            made.append(buffer.getvalue())
    with zipfile.ZipFile(io.BytesIO(made[2])) as archive:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as smaller:
            for name in archive.namelist():
                smaller.writestr(name, archive.read(name))
    made.append(packed.getvalue())
    from safetensors.torch import save

    made.append(save({"a": torch.ones(3, 2), "b": torch.ones(4).half()}, {"format": "pt"}))
    made += [pickle.dumps({"a": [1, (2, 3)], "p": Payload(marker)}, protocol=p) for p in range(6)]
    made += [
        b"<!DOCTYPE html><html></html>",
        b"\x89PNG\r\n\x1a\n",
        b"version https://git-lfs.github.com/spec/v1\n",
        b"{}",
    ]
    return made


def _flip(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(data))
        data[at] = rng.choice((rng.randrange(256), data[at] ^ 1 << rng.randrange(8), 0, 0xFF))


def _opcode(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 2, 5))):
        data[rng.randrange(min(len(data), 2000))] = rng.choice(OPCODES)


def _insert(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.choice((rng.randbytes(rng.randrange(1, 9)), bytes(rng.choices(OPCODES, k=rng.randrange(1, 9)))))


def _delete(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 4, 8, 64, 1000))]


def _cut(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    del data[rng.randrange(len(data)) :]


def _splice(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    other = rng.choice(pool)
    start = rng.randrange(len(other))
    at = rng.randrange(len(data))
    part = other[start : start + rng.choice((4, 16, 64, 400, 5000))]
    data[at : at + rng.choice((0, len(part)))] = part


def _number(data: bytearray, rng: random.Random, pool: Sequence[bytes]) -> None:
    width = rng.choice((2, 4, 8))
    at = rng.randrange(len(data))
    value = rng.choice(
        (0, 1, 0x7F, 0xFF, (1 << 8 * width) - 1, 1 << (8 * width - 1), len(data), rng.getrandbits(8 * width))
    )
    data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, rng.choice(("little", "big")))


MUTATIONS: tuple[Callable[[bytearray, random.Random, Sequence[bytes]], None], ...] = (
    _flip,
    _flip,
    _opcode,
    _insert,
    _delete,
    _cut,
    _splice,
    _splice,
    _number,
)


def mutate(rng: random.Random, pool: Sequence[bytes]) -> bytes:
    """One sample with one to four mutations."""
    data = bytearray(rng.choice(pool))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if data:
            rng.choice(MUTATIONS)(data, rng, pool)
    return bytes(data)


def exercise(data: bytes) -> Checkpoint | InspectorError:
    """Open, walk the tree, read every small tensor. Any other exception is a bug and passes through."""
    try:
        checkpoint = open_checkpoint(data, limits=LIMITS)
    except InspectorError as error:
        assert error.says
        return error
    left: list[Value] = [checkpoint.root]
    while left:
        left.extend(child for _, child in left.pop().children)
    for tensor in checkpoint.tensors[:20]:
        try:
            if tensor.numel < 1 << 20:
                assert read_array(checkpoint, tensor).shape == tensor.shape
        except InspectorError as error:
            assert error.says
    for state in checkpoint.state_dicts:
        assert state.tensors and state.why
    pickle.dumps(checkpoint)
    return checkpoint


def fuzz(executions: int, *, seconds: float = 0.0, seed: int = 0, keep: Path | None = None) -> dict[str, int]:
    """Counts by outcome: "checkpoint", the names of our errors, "bug". seconds: stop after that long, 0 for never."""
    counts: dict[str, int] = {}
    rng = random.Random(seed)
    started = shown = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        marker = Path(folder) / "marker"
        pool = samples(str(marker))
        for number in range(executions):
            data = mutate(rng, pool)
            begun = time.monotonic()
            try:
                answer = exercise(data)
                outcome = "checkpoint" if isinstance(answer, Checkpoint) else type(answer).__name__
                if time.monotonic() - begun > SLOW_SECONDS:
                    raise AssertionError(f"took {time.monotonic() - begun:.1f} s")
                if marker.exists():
                    raise AssertionError("a payload was run")
            except Exception:  # noqa: BLE001 - every kind of exception is what is looked for
                outcome = "bug"
                if keep is not None:
                    (keep / f"fuzz-{seed}-{number}.bin").write_bytes(data)
                traceback.print_exc()
            counts[outcome] = counts.get(outcome, 0) + 1
            now = time.monotonic()
            if keep is not None and now - shown > 30:
                shown = now
                print(f"{number + 1:,} executions, {counts}", flush=True)
            if seconds and now - started > seconds:
                break
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this many; 0: never")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(), help="folder for the files that found a bug")
    arguments = parser.parse_args()
    started = time.monotonic()
    counts = fuzz(arguments.executions, seconds=arguments.seconds, seed=arguments.seed, keep=arguments.keep)
    total = sum(counts.values())
    print(f"{total:,} executions in {time.monotonic() - started:.0f} s, seed {arguments.seed}")
    for outcome, n in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"  {outcome:16} {n:>9,}  {n / total:.1%}")
    return 1 if counts.get("bug") else 0


if __name__ == "__main__":
    raise SystemExit(main())
