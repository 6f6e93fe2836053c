"""Jobs that behave badly, to try the walls with: `ready` asks for a ping, tests and the fault table for the rest."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import numpy as np

from inspector.errors import ReadError
from inspector.jobs.bench import Bench
from inspector.jobs.kind import MB


def trial(bench: Bench, how: str, amount: float) -> str:
    """how: "ping", "fail", "raise", "sleep" seconds with progress, "loop" without, "allocate" or "grow" bytes, "need"
    bytes before they are taken, "segfault", "abort", "kill", "hold" bytes for the next job, "pid"."""
    if how == "sleep":
        steps = max(1, round(20 * amount))
        for step in range(steps):
            bench.progress(step, steps, f"step {step}")
            time.sleep(0.05)
    elif how == "loop":
        until = time.monotonic() + amount
        while time.monotonic() < until:
            pass
    elif how == "allocate":
        np.empty(int(amount), dtype=np.uint8)[::4096] = 1
    elif how == "grow":
        held = []
        for _ in range(int(amount // (10 * MB))):
            held.append(np.ones(10 * MB, dtype=np.uint8))
            time.sleep(0.01)
    elif how == "need":
        bench.need(int(amount))
        np.ones(int(amount), dtype=np.uint8)
    elif how == "hold":
        bench.keep(("trial", amount), lambda: np.ones(int(amount), dtype=np.uint8), nbytes=len, tag="trial")
    elif how == "segfault":
        ctypes.string_at(0)
    elif how == "abort":
        os.abort()
    elif how == "kill":
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    elif how == "fail":
        raise ReadError("The trial was to fail.", hint="It did.")
    elif how == "raise":
        raise ZeroDivisionError("a trial")
    return str(os.getpid()) if how == "pid" else how
