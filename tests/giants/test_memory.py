"""4 GB of numbers, and two checkpoints against each other, under a limit of 1 GB of memory, for whoever asks and for
each worker."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_MOST_NBYTES = 1 << 30
_SHAPE = (32_768, 16_384)
_TENSORS = 4


def sparse_checkpoint(path: Path, shape: tuple[int, int] = _SHAPE) -> int:
    """bfloat16 that was never written: zeros, of which no disk is taken. Where the numbers begin."""
    each = 2 * shape[0] * shape[1]
    told = {
        f"layers.{n}.weight": {"dtype": "BF16", "shape": shape, "data_offsets": [n * each, (n + 1) * each]}
        for n in range(_TENSORS)
    }
    header = json.dumps(told).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + _TENSORS * each)
    return 8 + len(header)


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_NBYTES, _MOST_NBYTES))


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_memory_is_flat(tmp_path: Path, executor: str, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    sparse_checkpoint(tmp_path / "giant.safetensors")
    asked = ["stats", str(tmp_path / "giant.safetensors"), "--store", str(tmp_path / "s"), "--json"]
    tensors = asked_for(*asked, "--executor", executor, "--jobs", "2")["weights"]["tensors"]
    assert [one["zero"] for one in tensors] == [_SHAPE[0] * _SHAPE[1]] * _TENSORS
    # Four pieces each, and none of them twice.
    assert len(list((tmp_path / "s" / "results").iterdir())) == 4 * _TENSORS
    check_peak()


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_two_giants_are_compared_in_as_little(tmp_path: Path, executor: str, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    # Half of it each: a pair is read whole by one worker, and is as large as the limit.
    shape = (_SHAPE[0] // 2, _SHAPE[1])
    sparse_checkpoint(tmp_path / "a.safetensors", shape)
    start = sparse_checkpoint(tmp_path / "b.safetensors", shape)
    with (tmp_path / "b.safetensors").open("r+b") as file:
        # One number of the second tensor, and the last of the fourth.
        for at in (2 * shape[0] * shape[1], 8 * shape[0] * shape[1] - 2):
            file.seek(start + at)
            file.write(b"\x80\x3f")  # 1.0
    asked = ["diff", str(tmp_path / "a.safetensors"), str(tmp_path / "b.safetensors"), "--json"]
    found = asked_for(*asked, "--store", str(tmp_path / "s"), "--executor", executor, "--jobs", "2")
    relations = {one["a"]["name"]: one["relation"] for one in found["tensors"]}
    assert relations == {f"layers.{n}.weight": "changed" if n % 2 else "same" for n in range(_TENSORS)}
    numbers = [one["numbers"] for one in found["tensors"] if one["numbers"] is not None]
    assert [(one["n"] - one["equal"], one["largest"]["index"], one["largest"]["size"]) for one in numbers] == [
        (1, 0, 1.0),
        (1, shape[0] * shape[1] - 1, 1.0),
    ]
    check_peak()


def asked_for(*arguments: str) -> dict[str, Any]:
    """What a command answers as JSON, under the limit, with whatever processes it starts."""
    ended = subprocess.run(
        [sys.executable, "-m", "inspector", *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        preexec_fn=limit,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr[-2000:]
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def check_peak() -> None:
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"peak of any process: {peak / 1e3:.0f} MB")
    assert peak * 1024 < _MOST_NBYTES
