"""How much work something is, without a clock: the lines of Python that it runs.

A clock says as much about the machine's other work. What lies in C alone (a regular expression, a dict whose keys
collide) has no lines: such a test is made so large that it would not end within the suite's own time limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable


class _Counter:
    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, frame: object, event: str, argument: object) -> _Counter:
        self.lines += 1
        return self


def steps(work: Callable[[], object]) -> int:
    """Lines run by work(), in this thread."""
    counter = _Counter()
    before = sys.gettrace()
    sys.settrace(counter)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(before)
    return counter.lines
