"""How a finding that groups tensors names them."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 3


def first_names(names: Sequence[str], most: int = NAMED) -> str:
    """("a", "b", "c", "d") -> "a, b, c and 1 more"."""
    if len(names) <= most:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"
