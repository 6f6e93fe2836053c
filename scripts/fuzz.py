"""Throw damaged and spliced checkpoints at the readers, and say whatever is neither a checkpoint nor our own error.

Half of the damage is anywhere in the file, half in one part of it with everything around it made right again; see
fuzz_mutators.py and, for what is damaged, fuzz_samples.py. `fuzz_guided.py` looks for new paths by coverage.

    python scripts/fuzz.py [--executions 100000] [--seconds 0] [--seed 0]

Every mutant is opened, its tensors are read and its tree is walked. A bug is: any exception that is no InspectorError,
more than ten seconds, or a marker file that a payload made. The mutant is then written to fuzz-<n>.bin beside a
traceback and the exit status is 1.
"""

from __future__ import annotations

import argparse
import pickle
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from fuzz_mutators import mutate
from fuzz_samples import samples

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint
from inspector.checkpoint.values import Value
from inspector.errors import InspectorError
from inspector.limits import Limits
from inspector.readers import open_checkpoint

SLOW_SECONDS = 10.0
# Small limits, so that a mutant which runs into one ends soon; the code is the same.
LIMITS = Limits(opcodes=200_000, inflated_nbytes=1 << 24, text_nbytes=1 << 22, nodes=20_000, tensors=20_000)


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
        assert state.why and (state.tensors or state.is_module)
    pickle.dumps(checkpoint)
    return checkpoint


def fuzz(
    executions: int,
    *,
    seconds: float = 0.0,
    seed: int = 0,
    keep: Path | None = None,
    pool: Mapping[str, bytes] | None = None,
) -> dict[str, int]:
    """Counts by outcome: "checkpoint", the names of our errors, "bug".

    seconds: stop after that long, 0 for never. pool: samples of before, whose payloads then make another marker.
    """
    counts: dict[str, int] = {}
    rng = random.Random(seed)
    started = shown = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        marker = Path(folder) / "marker"
        files = list((pool or samples(str(marker))).values())
        for number in range(executions):
            data = mutate(rng, files)
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
