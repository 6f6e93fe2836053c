"""Small networks under one to four adversaries each, diagnosed, answered truthfully and compared bit for bit.

python scripts/fuzz_compositions.py --cases 20000 --seed compositions
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from tests.keys.conftest import saved_checkpoint
from tests.keys.fuzz.compositions import Outcome, run


def main() -> int:
    """Print the counts; exit 1 when a complete repair was wrong where something in the file tells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", default="compositions")
    parser.add_argument("--show", type=int, default=10, help="how many wrong cases to print")
    parser.add_argument("--show-outcome", default=Outcome.WRONG.value)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long, and say how far")
    given = parser.parse_args()
    torch.set_num_threads(1)
    count: Counter[str] = Counter()
    by_adversary: dict[str, Counter[str]] = {}
    started, clock, shown, done = time.process_time(), time.monotonic(), 0, 0
    for number in range(given.start, given.start + given.cases):
        if time.monotonic() - clock > given.seconds:
            break
        done += 1
        verdict = run(f"{given.seed}-{number}", saved_checkpoint)
        count[verdict.outcome] += 1
        for name in set(verdict.done[1:]) or {"nothing"}:
            by_adversary.setdefault(name, Counter())[verdict.outcome] += 1
        if verdict.outcome.value == given.show_outcome and shown < given.show:
            shown += 1
            print(number, " ".join(verdict.done), "asked:", *verdict.asked, "wrong:", *verdict.wrong[:5], flush=True)
            print("   ", verdict.says[:300])
    print(json.dumps({"seed": given.seed, "start": given.start, "cases": done, **count}))
    for name, found in sorted(by_adversary.items()):
        print(f"  {name}: {dict(found)}")
    print(f"{time.process_time() - started:.0f} s of processor time")
    return 1 if count[Outcome.WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
