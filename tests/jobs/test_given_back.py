"""What a process gives back of what it freed, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")

# Pieces of 1 MB with small ones between them that stay: pages of visitors, and what is kept of them.
_PROGRAM = """
import os, sys
from inspector.jobs import walls

if sys.argv[1] == "little":
    walls.keep_little()
for _ in range(3):
    first = b"x" * (4 << 20)
    del first
before, large, small = walls.anonymous_nbytes(os.getpid()), [], []
for _ in range(100):
    large.append(b"x" * (1 << 20))
    small.append(bytearray(2000))
del large
print(walls.anonymous_nbytes(os.getpid()) - before)
"""


def test_large_pieces_are_given_back_though_small_ones_between_them_stay() -> None:
    held = {
        how: int(subprocess.check_output([sys.executable, "-c", _PROGRAM, how], cwd=ROOT))
        for how in ("little", "as it is")
    }
    assert held["little"] < 10e6 < held["as it is"]
