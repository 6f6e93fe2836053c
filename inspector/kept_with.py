"""What was worked out of an object, kept for as long as the object lives, and no longer.

For frozen reports that several questions are asked of one after the other: by identity, since to compare two of
twenty thousand records takes longer than the answer is worth.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class KeptWith(Generic[Owner, Value]):
    """make: the value of an owner, which must take weak references (`weakref_slot`). Two threads may both make it."""

    def __init__(self, make: Callable[[Owner], Value]) -> None:
        self._make = make
        # By id, which nobody else has while the owner lives.
        self._values: dict[int, Value] = {}

    def of(self, owner: Owner) -> Value:
        """The owner's value, made at the first call."""
        key = id(owner)
        if key in self._values:
            return self._values[key]
        value = self._values[key] = self._make(owner)
        weakref.finalize(owner, self._values.pop, key, None).atexit = False
        return value

    def __len__(self) -> int:
        return len(self._values)
