"""A million rows: planned, and a day later; what `make thorough` has time for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def told_by(*line: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *line], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_million_files_are_planned_in_flat_memory(thorough: bool) -> None:
    if not thorough:
        pytest.skip("make thorough")
    out = told_by("benchmarks.bench_scale", "--one", "listing")
    assert "1,000,000 pieces planned" in out
    peaks = [int(one.replace(",", "")) for one in re.findall(r"peak ([\d,]+) MB", out)]
    assert len(peaks) == 2 and max(peaks) < 1_300


def test_the_day_after_only_what_changed_is_read(thorough: bool) -> None:
    """The benchmark asserts that every file is in the report; what was read is what the store has one more of."""
    out = told_by("benchmarks.bench_increment", "20000" if thorough else "600")
    again, changed = re.findall(r"(\d+) results more in the store", out)
    assert (again, changed) == ("0", "200" if thorough else "6")
