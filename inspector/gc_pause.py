"""No garbage collection while a file is opened, recognised or judged.

An opening, a recognition or a diagnosis makes up to a million records, keeps nearly all of them, and the collector
would walk them again and again for a quarter of the time. `Limits.memory_nbytes` bounds what can pile up. The collector
is one for all threads of a process, so it comes back when the last of several at once has ended.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# New objects. To walk through fewer takes a fraction of a millisecond.
_WORTH_IT = 20_000

_lock = threading.Lock()
_openings = 0
_was_on = False


@contextmanager
def without_collecting() -> Iterator[None]:
    """Switches the collector off, and on again behind the last of all overlapping uses if it was on before the first.

    Safe to use from several threads and inside itself, whatever is raised.
    """
    global _openings, _was_on
    with _lock:
        if not _openings:
            _was_on = gc.isenabled()
            gc.disable()
        _openings += 1
    try:
        yield
    finally:
        with _lock:
            _openings -= 1
            if not _openings and _was_on:
                _pass_as_old()
                gc.enable()


def _pass_as_old() -> None:
    """Count all records as old ones; otherwise the first new object of anybody would set off a walk through them.

    Freezing and thawing does that without looking at any. Where a program has frozen objects of its own, they stay so:
    but they are counted one by one, in milliseconds, so a few records are not worth it.
    """
    if gc.get_count()[0] > _WORTH_IT and not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
