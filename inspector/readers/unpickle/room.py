"""How much memory and work is left for the outline of one file."""

from __future__ import annotations

# Children listed in all containers together. Each is met once, unless calls share their state or arguments.
_MOST_LISTED = 5_000_000


class Room:
    """left, taken: bytes, by estimate. What does not fit is counted by the caller and not made."""

    __slots__ = ("left", "listed", "taken")

    def __init__(self, nbytes: int) -> None:
        self.left = nbytes
        self.taken = 0
        self.listed = 0

    def take(self, nbytes: int) -> bool:
        """Whether there was room; then it is taken."""
        if nbytes > self.left:
            return False
        self.left -= nbytes
        self.taken += nbytes
        return True

    def give_back(self, nbytes: int) -> None:
        """What was taken for a while."""
        self.left += nbytes
        self.taken -= nbytes

    def work(self, n: int) -> bool:
        """Whether n more children may be listed; counted either way."""
        self.listed += n
        return self.listed <= _MOST_LISTED
