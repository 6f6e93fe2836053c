"""What an inner order is: a convention about the numbers inside one tensor that no shape shows.

Both sides of a repair may have one name and one shape for it and yet mean other numbers by the same place. Which
convention a side follows, its names prove or do not (`placing/provenance.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.keys.rules.entry import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One order of the numbers. says: what lies in which order, and who writes it so. shown: patterns, of which one in
    a side's names proves that it follows this way."""

    id: str
    says: str
    shown: tuple[str, ...]


def halves_exchanged(link: Link, ours: str, theirs: str) -> str:
    """The change where the ways are two halves of the rows, the one first or the other."""
    return "blocks:1-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerOrder:
    """One entry of `INNER_ORDERS`.

    holds: whether it is about this tensor. change: the step's value that takes a tensor from the first way to the
    second. what: the tensors, for a question. source: where the orders are known from.
    """

    id: str
    what: str
    ways: tuple[Way, ...]
    holds: Callable[[Link], bool]
    change: Callable[[Link, str, str], str]
    source: str
