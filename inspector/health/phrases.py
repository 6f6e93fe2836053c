"""How a finding names tensors: in its sentence shortened, the first few, and how many more; as its subjects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from inspector.findings import Finding, ranked
from inspector.keys.below import LISTED_OF_NUMBERS
from inspector.units import shorten_middle

_LONGEST = 120  # A file can make a name of a megabyte.


def shown(name: str) -> str:
    """The name, with its middle left out where it is endless."""
    return shorten_middle(name, _LONGEST)


def listed(names: Sequence[str], most: int = 3) -> str:
    """ "a, b, c and 12 more"."""
    return ", ".join(map(shown, names[:most])) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def also(names: Sequence[str]) -> str:
    """ "; also b, c and 3 more" behind a sentence about the first of them, "" where there is only that."""
    return f"; also {listed(names[1:])}" if len(names) > 1 else ""


def reported(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first, each with no more subjects than a page can hold."""
    return ranked(replace(one, subjects=one.subjects[:LISTED_OF_NUMBERS]) for one in findings)
