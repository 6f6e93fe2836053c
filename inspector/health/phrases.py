"""How a sentence about one tensor goes on where others are like it."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.health.listing import listed


def also(names: Sequence[str]) -> str:
    """ "; also b, c and 3 more" behind a sentence about the first of them, "" where there is only that."""
    return f"; also {listed(names[1:])}" if len(names) > 1 else ""
