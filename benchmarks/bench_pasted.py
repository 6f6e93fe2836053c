"""Is a pasted loading error explained rightly, however it was pasted? Over messages of public threads.

    python -m benchmarks.bench_pasted [--way NAME ...] [--list]

Some 160 messages, each with the cause that its thread found, are pasted in fifty ways: whole, halved, cut, wrapped, one
list without the other, with quotes, spaces or colours lost, in other punctuation. An answer is right, names two causes
of which one is right, or says that it does not know; one that is wrong fails the run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pasted.judge import VERDICTS, threads, verdict
from benchmarks.pasted.ways import WAYS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="append", choices=WAYS, help="only this way; may be given again")
    parser.add_argument("--list", action="store_true", help="list every message that is not answered rightly")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    wrong: list[str] = []
    print(f"{'pasted':40}" + "".join(f"{name:>12}" for name in VERDICTS))
    for name in options.way or WAYS:
        counts: Counter[str] = Counter()
        for thread in threads():
            text = WAYS[name](thread.text)
            if text == thread.text and name != "whole":
                continue  # This way changes nothing about it.
            answer = verdict(text, thread.right)
            counts[answer] += 1
            if answer == "wrong":
                wrong.append(f"{name}: {thread.source}")
            if options.list and answer != "right":
                print(f"  {answer}: {thread.source}")
        total += counts
        print(f"{name:40}" + "".join(f"{counts[one]:12,}" for one in VERDICTS), flush=True)
    print(f"{'all':40}" + "".join(f"{total[one]:12,}" for one in VERDICTS))
    for one in wrong:
        print(f"wrong: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
