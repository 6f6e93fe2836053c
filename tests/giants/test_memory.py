"""4 GB of numbers under a limit of 1 GB of memory, for whoever asks and for each worker."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_MOST_NBYTES = 1 << 30
_SHAPE = (32_768, 16_384)
_TENSORS = 4


def sparse_checkpoint(path: Path) -> None:
    """bfloat16 that was never written: zeros, of which no disk is taken."""
    each = 2 * _SHAPE[0] * _SHAPE[1]
    told = {
        f"layers.{n}.weight": {"dtype": "BF16", "shape": _SHAPE, "data_offsets": [n * each, (n + 1) * each]}
        for n in range(_TENSORS)
    }
    header = json.dumps(told).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + _TENSORS * each)


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_NBYTES, _MOST_NBYTES))


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_memory_is_flat(tmp_path: Path, executor: str, thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    sparse_checkpoint(tmp_path / "giant.safetensors")
    asked = ["stats", str(tmp_path / "giant.safetensors"), "--store", str(tmp_path / "s"), "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "inspector", *asked, "--executor", executor, "--jobs", "2"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        preexec_fn=limit,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    tensors = json.loads(ended.stdout)["weights"]["tensors"]
    assert [one["zero"] for one in tensors] == [_SHAPE[0] * _SHAPE[1]] * _TENSORS
    # Four pieces each, and none of them twice.
    assert len(list((tmp_path / "s" / "results").iterdir())) == 4 * _TENSORS
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"peak of any process: {peak / 1e3:.0f} MB")
    assert peak * 1024 < _MOST_NBYTES
