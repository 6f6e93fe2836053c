"""The pasted-error box on what each torch says of the same failing forwards: known, unknown, or another cause.

    python benchmarks/bench_forward_messages.py [PYTHON ...]

Each PYTHON is one with a torch of its own (1.0 to the newest); without any, this one. The messages are made by running
`benchmarks/pasted/provoke.py` there. Exits 1 where a message is explained by another cause alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from inspector.error_messages.explain import explain_error

PROVOKE = Path(__file__).parent / "pasted" / "provoke.py"


def main(pythons: list[str]) -> int:
    wrong = 0
    print(f"{'torch':18} {'fail':>5} {'right':>6} {'of two':>7} {'unknown':>8} {'wrong':>6}")
    for python in pythons or [sys.executable]:
        done = subprocess.run([python, str(PROVOKE)], capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        counts = dict.fromkeys(("right", "two", "unknown", "wrong"), 0)
        remarks: list[str] = []
        for name, (kind, text) in answer["said"].items():
            if not text.partition(": ")[2]:  # It does not fail here, or without a word.
                continue
            kinds = set(kind.split())
            trace = f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n{text}\n'
            found = [error.kind for error in explain_error(trace).errors]
            verdict = (
                "unknown" if not found else "wrong" if not kinds & set(found) else "right" if len(found) == 1 else "two"
            )
            counts[verdict] += 1
            if verdict != "right":
                remarks.append(f"    {verdict}: {name} ({kind}, said {', '.join(found) or 'nothing'}): {text[:160]!r}")
        version = answer["torch"]
        print(f"{version:18} {sum(counts.values()):5} " + "{right:6} {two:7} {unknown:8} {wrong:6}".format(**counts))
        print("\n".join(remarks))
        wrong += counts["wrong"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
