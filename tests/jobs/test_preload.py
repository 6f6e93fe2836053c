"""What workers are born with, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from inspector.jobs.kinds.table import KINDS

_PROGRAM = """
import sys
import inspector.jobs.preload
from inspector.architectures.index import load_index
print(*sorted(sys.modules), "read" if load_index.cache_info().currsize else "unread", flush=True)
"""


def test_no_job_waits_for_its_modules_and_no_worker_reads_the_index_for_itself() -> None:
    """A visitor's first map took 0.2 s longer than the next ones, and so did that of each further worker."""
    root = Path(__file__).resolve().parents[2]
    found = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=root, capture_output=True, text=True, check=True)
    words = found.stdout.split()
    assert {f"inspector.jobs.kinds.{kind.where.partition(':')[0]}" for kind in KINDS} <= set(words)
    assert words[-1] == "read"
