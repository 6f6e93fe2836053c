"""How much of a file is believed before anything is allocated for it.

Every length, offset and count read from a file is checked against these. The defaults pass every real checkpoint we
know of; a hostile one runs into them early. Exceeding one is an error or a finding with the figure in it.

Counts alone do not bound memory: a byte of a pickle can make a hundred of it. So one opening also has a `Budget`, and
whoever builds records from a file says what they take before building the next lot.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from inspector.errors import LimitExceeded


class Budget:
    """Bytes that one opening may still take, estimated; shared by every file opened in it."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.left = most


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds, inclusive.

    memory_nbytes: everything that one opening keeps in memory, by estimate (bytes). A tensor takes 1.7 kB in a
    safetensors file and 2.8 kB in a pickle, so 100,000 and 50,000 tensors in one file pass. Larger models are sharded.
    pickle_nbytes: one pickle stream (bytes). The pickle of a 20,000-tensor file is about 3 MB.
    opcodes: steps of the pickle machine for one stream.
    memo: entries in a pickle's memo; also its containers and calls.
    global_names: different names that one pickle would import. Real files have a few dozen.
    depth: nesting of containers and modules.
    nodes: values kept for display in the tree; what is over it is counted, not shown.
    text_nbytes: one string or bytes constant in a pickle.
    members: entries in an archive's directory.
    header_nbytes: a safetensors header or a zip directory. The safetensors library's own cap is 100,000,000; 100,000
    tensors need 13,000,000.
    inflated_nbytes: one compressed member that has to be in memory whole, after inflating.
    inflation_ratio: the same, relative to its compressed size (small members are exempt).
    tensors: tensors in one file; their memory is counted besides.
    dimensions: of one tensor; torch's own cap is 64.
    side_nbytes: a file beside the checkpoint that is read whole: a list of keys or classes, a pasted error, a model's
    source. A million keys take 60,000,000.
    """

    memory_nbytes: int = 208_000_000
    pickle_nbytes: int = 512 * 1024 * 1024
    opcodes: int = 20_000_000
    memo: int = 4_000_000
    global_names: int = 10_000
    depth: int = 200
    nodes: int = 200_000
    text_nbytes: int = 24 * 1024 * 1024
    members: int = 300_000
    header_nbytes: int = 40_000_000
    inflated_nbytes: int = 64 * 1024 * 1024
    inflation_ratio: int = 200
    tensors: int = 300_000
    dimensions: int = 64
    side_nbytes: int = 64 * 1024 * 1024
    budget: Budget | None = field(default=None, compare=False, repr=False)

    def metered(self) -> Limits:
        """The same limits with a fresh budget: once per opening."""
        return replace(self, budget=Budget(self.memory_nbytes))

    def trial(self, *, opcodes: int, nbytes: int) -> Limits:
        """For following a pickle only to see what it is: so many steps and bytes at most, and what that makes is let go
        of at once, so it takes nothing off the budget."""
        return replace(
            self, opcodes=min(self.opcodes, opcodes), pickle_nbytes=min(self.pickle_nbytes, nbytes), budget=None
        )

    @property
    def room(self) -> int:
        """Bytes that may still be taken; all of `memory_nbytes` outside an opening."""
        return self.budget.left if self.budget is not None else self.memory_nbytes

    def need(self, nbytes: int, what: str) -> None:
        """Raise LimitExceeded unless there is room for something that is let go of again soon."""
        if nbytes > self.room:
            raise LimitExceeded(
                f"{what} would take about {nbytes // 1_000_000:,} MB of memory; {self.room // 1_000_000:,} of "
                f"{self.memory_nbytes // 1_000_000:,} MB are left.",
                hint="No real checkpoint needs so much for its headers.",
            )

    def charge(self, nbytes: int, what: str) -> None:
        """The same for something that stays: taken off the budget."""
        self.need(nbytes, what)
        self.spend(nbytes)

    def spend(self, nbytes: int) -> None:
        """Take off the budget what is there already; a negative number gives back."""
        if self.budget is not None:
            self.budget.left = max(0, self.budget.left - nbytes)


DEFAULT_LIMITS = Limits()
