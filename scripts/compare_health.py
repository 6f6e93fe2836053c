"""Whether two checkouts say the same about the numbers of files, to the last digit.

    python scripts/compare_health.py --against OTHER/CHECKOUT [--seeds 40] [FILE ...]

Files are the samples, those given, and seeded ones of many small tensors, well and sick (`tests/health/many_small.py`).
Compared are all statistics, findings with their evidence, roles, and what was not examined. Exit 1 where one differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# Runs with either checkout on the path: one line of JSON for each file.
_SAYS = """
import hashlib, json, sys, time
from inspector.health.examine import examine_sets
from inspector.readers import open_checkpoint
for path in sys.argv[1:]:
    began = time.process_time()
    try:
        found = examine_sets(open_checkpoint(path))
    except Exception as error:
        says = [repr(error)]
    else:
        # A clock's reading is no number of the file.
        parts = [(one.findings, one.not_examined, one.roles, one.weights.tensors) for _, one in found]
        says = [hashlib.sha256(repr(part).encode("utf-8", "replace")).hexdigest() for one in parts for part in one]
        says += [finding.id for _, one in found for finding in one.findings]
    print(json.dumps([path, says, time.process_time() - began]), flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        files = [str(path) for path in given.files]
        files += [str(path) for path in sorted((ROOT / "sample_models").rglob("*")) if path.suffix in _SAMPLES]
        files += make(Path(temporary), given.seeds)
        ours, theirs = (said(checkout, files) for checkout in (ROOT, given.against.resolve()))
    wrong = [path for path in files if ours[path][0] != theirs[path][0]]
    kinds = {word for says, _ in ours.values() for word in says if len(word) < 60}
    seconds = [sum(each[1] for each in both.values()) for both in (ours, theirs)]
    print(f"{len(files):,} files, {len(kinds)} kinds of findings, {len(wrong)} differ; CPU s here, there: {seconds}")
    print(*wrong, sep="\n")
    return int(bool(wrong))


_SAMPLES = frozenset({".pt", ".pth", ".safetensors", ".gguf", ".bin", ".npz", ".ckpt", ".h5", ".onnx", ".pt2"})


def make(folder: Path, seeds: int) -> list[str]:
    """Paths of seeded files."""
    import torch

    from tests.health.many_small import small_tensors

    made = []
    for seed in range(seeds):
        path = folder / f"seed{seed}.pth"
        torch.save(small_tensors(1000 + seed), path)
        made.append(str(path))
    return made


def said(checkout: Path, files: list[str]) -> dict[str, tuple[list[str], float]]:
    """By file: digests of what is said and the findings' ids; processor seconds."""
    done = subprocess.run(
        [sys.executable, "-c", _SAYS, *files],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        cwd=checkout,
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = (json.loads(line) for line in done.stdout.splitlines())
    return {path: (says, seconds) for path, says, seconds in lines}


if __name__ == "__main__":
    sys.exit(main())
