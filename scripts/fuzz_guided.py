"""Coverage-guided fuzzing of the readers with atheris (libFuzzer): mutants that reach new code are mutated on.

    python scripts/fuzz_guided.py [--seconds 300] [--seed 1] [--corpus FOLDER] [--keep FOLDER]

The corpus begins with the samples; half of the mutants are libFuzzer's own, half keep the format whole
(fuzz_mutators.py). What counts as a bug is the same as in fuzz.py; the first one ends the run with status 1, its file
in the keep folder. Without atheris, which has wheels for few systems, the plain fuzzer runs as long instead.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

_MOST_NBYTES = 64 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="kept between runs; a new one of the samples by default")
    parser.add_argument("--keep", type=Path, default=Path(), help="folder for the file that found a bug")
    arguments = parser.parse_args()
    try:
        import atheris
    except ImportError:
        print("atheris is not installed, so the plain fuzzer runs instead: pip install -e .[fuzz]")
        import fuzz

        counts = fuzz.fuzz(10**9, seconds=arguments.seconds, seed=arguments.seed, keep=arguments.keep)
        print(f"{sum(counts.values()):,} executions, {counts}")
        return 1 if counts.get("bug") else 0
    with atheris.instrument_imports(include=["inspector.readers", "inspector.checkpoint"]):
        import inspector.readers.opening  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        return _run(atheris, arguments, Path(folder))


def _run(atheris: object, arguments: argparse.Namespace, folder: Path) -> int:
    import fuzz
    from fuzz_mutators import damage_inside
    from fuzz_samples import samples

    from inspector.checkpoint.types import Checkpoint

    marker = folder / "marker"
    pool = list(samples(str(marker)).values())
    corpus = arguments.corpus or folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(pool):
        (corpus / f"sample-{number:02}").write_bytes(data)
    counts: dict[str, int] = {}

    def one(data: bytes) -> None:
        begun = time.monotonic()
        try:
            answer = fuzz.exercise(data)
            outcome = "checkpoint" if isinstance(answer, Checkpoint) else type(answer).__name__
            if time.monotonic() - begun > fuzz.SLOW_SECONDS:
                raise AssertionError(f"took {time.monotonic() - begun:.1f} s")
            if marker.exists():
                raise AssertionError("a payload was run")
        except Exception:
            (arguments.keep / f"guided-{arguments.seed}-{sum(counts.values())}.bin").write_bytes(data)
            traceback.print_exc()
            raise
        counts[outcome] = counts.get(outcome, 0) + 1
        if sum(counts.values()) % 20_000 == 0:
            print(f"{sum(counts.values()):,} executions, {counts}", flush=True)

    def mutant(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if not data or rng.random() < 0.5:
            made: bytes = atheris.Mutate(data, len(data))  # type: ignore[attr-defined]
        else:
            made = damage_inside(data, rng, pool)
        return made[:most]

    options = [
        sys.argv[0],
        f"-max_total_time={arguments.seconds}",
        f"-seed={arguments.seed}",
        f"-max_len={_MOST_NBYTES}",
        "-timeout=30",
        "-rss_limit_mb=3000",
        "-print_final_stats=1",
        str(corpus),
    ]
    atheris.Setup(options, one, custom_mutator=mutant)  # type: ignore[attr-defined]
    atheris.Fuzz()  # type: ignore[attr-defined]
    return 0


if __name__ == "__main__":
    sys.exit(main())
