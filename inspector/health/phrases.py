"""How a sentence about one tensor goes on where others are like it."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.health.listing import listed
from inspector.units import shorten_middle

_LONGEST = 120  # A file can make a name of a megabyte.


def shown(name: str) -> str:
    """The name, with its middle left out where it is endless."""
    return shorten_middle(name, _LONGEST)


def also(names: Sequence[str]) -> str:
    """ "; also b, c and 3 more" behind a sentence about the first of them, "" where there is only that."""
    return f"; also {listed(names[1:])}" if len(names) > 1 else ""
