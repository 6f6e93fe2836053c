"""What a visitor reads when a job ended without a result."""

from __future__ import annotations

import signal

from inspector.errors import WorkEnded
from inspector.units import human_bytes, human_duration

_SMALLER = "Try a smaller input or file, or the command line on a machine with more memory."
_ELSEWHERE = "Nothing else was touched: your file and your other results are still here."


def too_much(says: str, nbytes: int) -> WorkEnded:
    """It grew over its allowance, or an allocation was refused."""
    return WorkEnded(
        f"{says} was ended: it needed more than the {human_bytes(nbytes)} of memory that one job may take here.",
        hint=_SMALLER,
    )


def cannot_fit(says: str, needed: int, most: int, instead: str = "") -> WorkEnded:
    """By the estimate, before it began."""
    return WorkEnded(
        f"{says} would take about {human_bytes(needed)} of memory; one job may take {human_bytes(most)} here.",
        hint=instead or _SMALLER,
    )


def too_long(says: str, seconds: float) -> WorkEnded:
    """The deadline passed."""
    most = human_duration(seconds)
    return WorkEnded(f"{says} was ended after {most}, the most that it may take here.", hint=_SMALLER)


def died(says: str, exit_code: int | None) -> WorkEnded:
    """The process ended by itself. exit_code: negative for a signal, as multiprocessing says it."""
    if exit_code == -signal.SIGSEGV:
        return WorkEnded(f"{says} crashed (segmentation fault) and gave no result.", hint=_ELSEWHERE)
    if exit_code == -signal.SIGABRT:
        return WorkEnded(f"{says} was aborted, as libraries do that get no more memory.", hint=_SMALLER)
    if exit_code == -getattr(signal, "SIGKILL", 9):
        return WorkEnded(f"{says} was ended by the system, most likely for want of memory.", hint=_SMALLER)
    return WorkEnded(f"{says} ended without a result (exit code {exit_code}).", hint=_ELSEWHERE)


def unkept(says: str) -> WorkEnded:
    """Its result could not be handed over."""
    return WorkEnded(
        f"{says} has a result that the server could not keep: its disk may be full.", hint="Try once more later."
    )


def no_worker(says: str) -> WorkEnded:
    """It may only run in a process of its own, and there are none."""
    return WorkEnded(
        f"{says} was not begun: your code and the file's weights meet in a worker process, and this server has none.",
        hint="Start it without INSPECTOR_WORKERS=0.",
    )


def lost(says: str) -> WorkEnded:
    """The broker ended twice under it."""
    return WorkEnded(f"{says} was lost: the server's workers had to be started again.", hint="Try once more.")
