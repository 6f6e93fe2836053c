"""Square and equally shaped layers as eight libraries write them, mixed in one file, repaired with truthful answers.

python scripts/fuzz_layouts.py --cases 5000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from tests.keys.conftest import saved_checkpoint
from tests.keys.fuzz.libraries import make, shows_itself
from tests.keys.fuzz.truthful import repair_truthfully


def main() -> int:
    """Print the counts; exit 1 when a repair was silent about wrong numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--show", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    count: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    started, tried, shown = time.perf_counter(), 0, 0
    while count["cases"] < given.cases:
        net = make(f"{given.seed}-{tried}")
        tried += 1
        if not shows_itself(net):
            count["shows nothing at all (not counted)"] += 1
            continue
        told = repair_truthfully(net, saved_checkpoint)
        count["cases"] += 1
        asked.update(told.asked)
        count["asked something"] += bool(told.asked)
        kind = "SILENT" if told.wrong else "right" if told.complete else "not repaired"
        count[kind] += 1
        if told.wrong and shown < given.show:
            shown += 1
            print(net.seed, sorted(set(net.libraries.values())), net.container, told.wrong[:4], told.says[:200])
    print(dict(count), "questions:", dict(asked), f"{time.perf_counter() - started:.0f} s")
    return 1 if count["SILENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
