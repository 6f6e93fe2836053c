"""A program in a network of its own: a scheduler, one worker beside it and one at the end of a cable that is cut.

    unshare --net python -m tests.sweep.partition FOLDER

Prints what came of the sweep as JSON. Nothing outside its own namespaces is touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from inspector.sweep.engines import engine_of
from inspector.sweep.run import sweep
from tests.sweep.test_run import pieces_of
from tests.sweep.works import Square, calls, lost

HERE, THERE = "10.77.0.1", "10.77.0.2"
PIECES, SECONDS = 60, 0.2
# As docs/scale.md tells operators to.
SETTINGS = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "15s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "15s"}


def main(folder: Path) -> None:
    far = subprocess.Popen(["unshare", "--net", "sleep", "300"])
    inside = ["nsenter", "--target", str(far.pid), "--net"]
    time.sleep(0.5)
    for line in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "add", "near", "type", "veth", "peer", "name", "far"],
        ["ip", "link", "set", "far", "netns", str(far.pid)],
        ["ip", "addr", "add", f"{HERE}/24", "dev", "near"],
        ["ip", "link", "set", "near", "up"],
        [*inside, "ip", "link", "set", "lo", "up"],
        [*inside, "ip", "addr", "add", f"{THERE}/24", "dev", "far"],
        [*inside, "ip", "link", "set", "far", "up"],
    ):
        subprocess.run(line, check=True)
    address = f"tcp://{HERE}:8786"
    environment = {**os.environ, **SETTINGS, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}

    def start(name: str, *arguments: str, where: list[str] = []) -> subprocess.Popen[bytes]:  # noqa: B006 - not changed
        line = [*where, sys.executable, "-m", f"distributed.cli.{name}", *arguments, "--no-dashboard"]
        return subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    programs = [far, start("dask_scheduler", "--host", HERE, "--port", "8786")]
    try:
        programs.append(start("dask_worker", address, "--nthreads", "1"))
        programs.append(start("dask_worker", address, "--nthreads", "1", where=inside))
        from distributed import Client

        with Client(address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
        found: dict[int, str] = {}
        cut = 0.0
        with engine_of(address) as engine:
            work = Square(log=str(folder), seconds=SECONDS)
            for place, outcome in sweep("squares", pieces_of(PIECES), work, lost=lost, engine=engine, together=1):
                found[place] = outcome.data.decode()
                if len(found) == 15:
                    subprocess.run(["ip", "link", "set", "near", "down"], check=True)
                    cut = time.monotonic()
        told = {"found": found, "seconds": time.monotonic() - cut, "calls": len(calls(folder))}
        print(json.dumps(told))
    finally:
        for program in reversed(programs):
            program.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
