"""How much memory and work is left for the outline of one file."""

from __future__ import annotations

# Children listed in all containers together.
_MOST_LISTED = 5_000_000
# Of those, listed again because objects share one state or one tuple of arguments; real files hardly ever do.
_MOST_REPEATED = 100_000


class Room:
    """left, taken: bytes, by estimate. What does not fit is counted by the caller and not made."""

    __slots__ = ("left", "listed", "met", "repeated", "taken")

    def __init__(self, nbytes: int) -> None:
        self.left = nbytes
        self.taken = 0
        self.listed = 0
        self.repeated = 0
        self.met: set[tuple[str, int]] = set()

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

    def again(self, purpose: str, shared: object, n: int) -> bool:
        """Whether the n children that an object has in something it may share can be listed; the first time is free."""
        key = (purpose, id(shared))
        if key in self.met:
            self.repeated += n
        self.met.add(key)
        return self.repeated <= _MOST_REPEATED

    def work(self, n: int) -> bool:
        """Whether n more children may be listed; counted either way."""
        self.listed += n
        return self.listed <= _MOST_LISTED
