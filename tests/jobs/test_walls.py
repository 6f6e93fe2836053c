"""What limits a job is there, or said to be missing when the server starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from inspector.jobs import walls

ALLOCATE = """
import sys
from inspector.jobs.walls import drop_wall, raise_wall
raise_wall(int(sys.argv[1]))
try:
    held = bytes(2_500_000_000)  # of zeros, which nobody writes
except MemoryError:
    print("stopped")
else:
    print("taken")
drop_wall()
bytes(2_500_000_000)
print("free again")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the wall is Linux's")
@pytest.mark.parametrize(("allowed", "became"), [(100_000_000, "stopped"), (3_000_000_000, "taken")])
def test_one_huge_allocation_stops_at_the_wall_until_it_is_dropped(allowed, became):
    ran = subprocess.run([sys.executable, "-c", ALLOCATE, str(allowed)], capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == [became, "free again"]


@pytest.mark.parametrize(
    ("platform", "workers", "says"),
    [("linux", 3, ""), ("linux", 0, "in the server itself"), ("darwin", 3, "memory"), ("win32", 3, "memory")],
)
def test_the_start_says_which_walls_do_not_stand(platform, workers, says, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    said = walls.what_is_missing(workers)
    assert says in said if says else said == ""
