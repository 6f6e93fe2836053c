"""How a finding names many tensors: the first few, and how many more."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.keys.below import LISTED_OF_NUMBERS
from inspector.units import shorten_middle

_LONGEST = 120  # A file can make a name of a megabyte.


def listed(names: Sequence[str], most: int = 3) -> str:
    """ "a, b, c and 12 more"."""
    shown = ", ".join(shorten_middle(name, _LONGEST) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")


def bounded(names: Sequence[str]) -> tuple[str, ...]:
    """The subjects of a finding: no more than a page can hold."""
    return tuple(names[:LISTED_OF_NUMBERS])
