"""Writes tests/slow.txt, what `make quick` leaves out, from the times of a run, or of several: later ones count.

    python -m pytest --durations=0 --durations-min=0.001 | tee times.txt
    python scripts/test_times.py times.txt

Listed is every function that takes more than a third of a second over all its cases, the longest first.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW = Path(__file__).resolve().parents[1] / "tests" / "slow.txt"
_LINE = re.compile(r"([0-9.]+)s (?:call|setup|teardown) +(tests/\S+?::\w+(?:::\w+)?)")
_LEAST_SECONDS = 0.3


def main() -> int:
    seconds: dict[str, float] = {}
    for name in sys.argv[1:]:
        taken_there: defaultdict[str, float] = defaultdict(float)
        for line in Path(name).read_text(encoding="utf-8").splitlines():
            if match := _LINE.match(line):
                taken_there[match[2]] += float(match[1])
        # What ran again is as it was then.
        seconds |= taken_there
    slow = sorted(((s, name) for name, s in seconds.items() if s > _LEAST_SECONDS), reverse=True)
    SLOW.write_text("".join(f"{s:8.1f} s  {name}\n" for s, name in slow), encoding="utf-8")
    taken = sum(s for s, _ in slow)
    print(f"{len(slow)} functions take {taken:.0f} s, the rest {sum(seconds.values()) - taken:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
