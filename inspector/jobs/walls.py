"""How much memory a process holds, and the wall behind which it works. What the system does not offer is said.

RLIMIT_DATA counts what a process may write, touched or not: it stops one huge allocation at once. RLIMIT_AS would count
file maps too, and torch alone maps gigabytes. What grows in small steps is seen by whoever watches `anonymous_nbytes`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

# Arenas and stacks of threads that torch and OpenMP reserve and hardly touch.
_RESERVED = 1 << 30
# M_ARENA_MAX and M_MMAP_THRESHOLD of malloc.h.
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3


def anonymous_nbytes(pid: int) -> int:
    """Memory of a process that is in no file: RssAnon and RssShmem. 0 where the system does not tell."""
    return _status(pid, ("RssAnon", "RssShmem"))


def _status(pid: int, names: tuple[str, ...]) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.partition(":")[0] in names)


def what_is_missing(workers: int) -> str:
    """A sentence where not all walls stand, "" where they do. workers: processes for the work, 0 for none."""
    if workers == 0:
        return "Work runs in the server itself (INSPECTOR_WORKERS=0): one model can take all its memory and time."
    if sys.platform != "linux":
        return (
            "This system does not limit the memory of work: only its time is limited, and a crash ends one job alone."
        )
    return ""


def raise_wall(nbytes: int) -> None:
    """Let this process allocate so much more than it has now, and no more; nothing where there is no such wall."""
    if sys.platform != "linux":
        return
    import resource

    now = _status(os.getpid(), ("VmData",))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = now + nbytes + _RESERVED
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def drop_wall() -> None:
    """Between jobs: the next one sets its own."""
    if sys.platform != "linux":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def give_back() -> None:
    """Hand freed memory back to the system, which glibc keeps for itself otherwise."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        except (OSError, AttributeError):
            return


def keep_little(*, arenas: int = 2, apart_nbytes: int = 128 << 10) -> None:
    """For a process of many short threads: all share so many heaps, and what is larger lies outside of them.

    glibc gives each thread a heap, and lets ever larger pieces in; between what stays nothing of it is given back.
    """
    if sys.platform == "linux":
        try:
            mallopt = ctypes.CDLL("libc.so.6").mallopt
        except (OSError, AttributeError):
            return
        mallopt(_ARENA_MAX, arenas)
        mallopt(_MMAP_THRESHOLD, apart_nbytes)
