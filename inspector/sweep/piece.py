"""What a sweep is made of: pieces of work that depend on nothing but themselves, and what each gave."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from inspector.errors import UsageError

Item = TypeVar("Item")

#: A key of a result is as many hexadecimal digits.
KEY_DIGITS = 40
_PART_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece(Generic[Item]):
    """One piece of work.

    item: what the work is given; it must pickle. key: of its result in a store, "" for what is never kept. nbytes: that
    are read for it, 0 for unknown.
    """

    item: Item
    key: str = ""
    nbytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the work gave for one item. data: the same bytes wherever it ran. kept: whether a store may give it again;
    False for what says something of the machine, or of a file that changed meanwhile. aside: what is kept with it under
    the same key, for whoever reads the store; it may be far larger."""

    data: bytes
    kept: bool = True
    aside: bytes = b""


Work = Callable[[Item], Outcome]
#: The result of an item whose work ended its worker, or failed as it should not: (item, why).
Lost = Callable[[Item, str], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The share of one of several drivers. number: from 1 to `of`."""

    number: int = 1
    of: int = 1

    def holds(self, name: str) -> bool:
        """Whether what has this name is this part's: the same for every driver, whatever else there is."""
        return int(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:15], 16) % self.of == (
            self.number - 1
        )

    def places(self, count: int) -> range:
        """Which of so many pieces in a fixed order are this part's; of all parts together each once."""
        return range(self.number - 1, count, self.of)


WHOLE = Part()
# Made once: a million keys are asked for.
_WRITTEN = json.JSONEncoder(ensure_ascii=True, default=str, separators=(",", ":"))


def parse_part(text: str) -> Part:
    """`3/16` as the third of sixteen. Raises UsageError for what is none."""
    number, slash, of = text.strip().partition("/")
    whole = slash and all(one.isascii() and one.isdigit() and len(one) <= _PART_DIGITS for one in (number, of))
    if whole and 1 <= int(number) <= int(of):
        return Part(number=int(number), of=int(of))
    raise UsageError(f"{text!r} is no part.", hint="Write 3/16 for the third of sixteen; parts count from 1.")


def key_of(question: str, *facts: object) -> str:
    """The key of a result: of what was asked, of what, and by which engine. facts: whatever JSON can say."""
    told = _WRITTEN.encode([question, engine_version(), facts])
    return hashlib.sha256(told.encode("ascii")).hexdigest()[:KEY_DIGITS]


@cache
def engine_version() -> str:
    """A digest of this package's own code: another version may answer otherwise, an edited one as well."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def batches_of(pieces: Iterable[tuple[int, int]], *, most: int, most_nbytes: int) -> list[tuple[int, ...]]:
    """Neighbours that travel together. pieces: (place, nbytes) of each; a piece over most_nbytes travels alone."""
    found: list[tuple[int, ...]] = []
    batch: list[int] = []
    held = 0
    for place, nbytes in pieces:
        if batch and (len(batch) >= most or held + nbytes > most_nbytes):
            found.append(tuple(batch))
            batch, held = [], 0
        batch.append(place)
        held += nbytes
    if batch:
        found.append(tuple(batch))
    return found
