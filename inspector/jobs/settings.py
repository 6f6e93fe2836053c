"""What the operator allows the workers: how many, how much memory, how many threads."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import UsageError
from inspector.jobs.kind import MB

WORKERS, MEMORY = "INSPECTOR_WORKERS", "INSPECTOR_MEMORY"
# Of what is free at the start: the web process, the pages of files and other programs want some as well.
_SHARE = 0.7
# Less is not enough to run torch at all.
_LEAST_NBYTES = 1000 * MB
_MOST_WORKERS = 8
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """workers: processes at most; 0 runs everything in the asking process, without walls. memory_nbytes: of all jobs
    and workers together. threads: of torch in each. results: the folder of kept results.
    alone_seconds: after which workers let go of what they keep when nobody is there."""

    workers: int
    memory_nbytes: int
    threads: int
    results: Path
    results_nbytes: int = 2000 * MB
    alone_seconds: float = 20.0


def own_settings(results: Path) -> Settings:
    """As the environment says, else by the machine. Raises UsageError for what means nothing."""
    cores = _cores()
    workers = _whole(WORKERS, min(_MOST_WORKERS, cores + 1))
    memory = _nbytes(MEMORY, max(_LEAST_NBYTES, int(_SHARE * _free_nbytes())))
    # A worker is mostly alone; more workers than that share the processors.
    threads = cores if workers <= cores + 1 else max(1, 2 * cores // workers)
    return Settings(
        workers=workers,
        memory_nbytes=memory,
        threads=threads,
        results=results,
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _whole(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) > 256:
        raise UsageError(f"{name}={text} is no number of processes.", hint="0 to 256; 0 runs everything in the server.")
    return int(text)


def _nbytes(name: str, default: int) -> int:
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.upper())
    if found is None:
        raise UsageError(f"{name}={text} is no amount of memory.", hint=f"Write {name}=4GB.")
    nbytes = int(float(found[1]) * _UNITS[found[2]])
    if nbytes < _LEAST_NBYTES:
        raise UsageError(f"{name}={text} is too little to run a model.", hint=f"At least {_LEAST_NBYTES // MB} MB.")
    return nbytes


def _free_nbytes() -> int:
    """Memory that can be had now, also where the process is held in by a cgroup; 4 GB where nobody says."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        pass
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found.append(int(Path(name).read_text()))
        except (OSError, ValueError):
            continue
    return min(found) if found else 4 * 10**9
