"""Units as pieces of a sweep, a million at once: what each is known by is packed, the rest made when asked for."""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from inspector.readers.listed_folder import RemoteFile
from inspector.survey.described import Identity
from inspector.survey.walk import Unit
from inspector.sweep.piece import KEY_DIGITS, Piece, key_of

#: What the results are called in a store.
QUESTION = "rows"

_KEY_NBYTES = KEY_DIGITS // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitItem:
    """identity: None where nobody asks for it, as the result is not kept; () of a remote file, which tells by itself
    whether it changed."""

    place: Path | RemoteFile
    path: str
    identity: Identity | None = None


class _Made(Sequence[Piece[UnitItem]]):
    """Pieces that are made when they are asked for."""

    @abstractmethod
    def piece(self, place: int) -> Piece[UnitItem]:
        """That at a place from 0 on."""

    @overload
    def __getitem__(self, place: int) -> Piece[UnitItem]: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Piece[UnitItem], ...]: ...

    def __getitem__(self, place: int | slice) -> Piece[UnitItem] | tuple[Piece[UnitItem], ...]:
        chosen = range(len(self))[place]
        return self.piece(chosen) if isinstance(chosen, int) else tuple(map(self.piece, chosen))

    def __iter__(self) -> Iterator[Piece[UnitItem]]:
        return map(self.piece, range(len(self)))


class UnitPieces(_Made):
    """A piece for each unit, in their order. Files here are looked at once, when this is made.

    facts: see `facts_of`. kept: whether a store asks for their results by a key, which what has a row has none of.
    Of each 36 bytes are held beside the unit: as objects, which these are made into one by one, they take 300.
    """

    def __init__(self, units: Sequence[Unit], facts: str, *, kept: bool = True) -> None:
        self.units = units
        self.kept = kept
        self._keys = bytearray()
        # Size and time of a file; of whatever is more, or less, than one file what stands in `_others`.
        self._sizes = array("q")
        self._times = array("q")
        self._others: dict[int, Identity] = {}
        for place, unit in enumerate(units) if kept else ():
            identity = () if unit.row is not None else _known(unit)
            self._keys += bytes.fromhex(key_of(QUESTION, facts, unit.path, unit.is_folder, identity))
            self._hold(place, unit, identity)

    def __len__(self) -> int:
        return len(self.units)

    def piece(self, place: int) -> Piece[UnitItem]:
        unit = self.units[place]
        if not self.kept or unit.row is not None:
            return Piece(item=UnitItem(place=unit.remote or unit.place, path=unit.path))
        if unit.remote is not None:
            # By what it is known is in the listing's entry: of a million files none is said twice.
            item = UnitItem(place=unit.remote, path=unit.path, identity=())
            return Piece(item=item, key=self.key_at(place), nbytes=unit.remote.size)
        identity = self._others.get(place)
        if identity is None:
            identity = (("", self._sizes[place], self._times[place]),)
        return Piece(
            item=UnitItem(place=unit.place, path=unit.path, identity=identity),
            key=self.key_at(place),
            nbytes=sum(nbytes for _, nbytes, _ in identity),
        )

    def key_at(self, place: int) -> str:
        """Of a unit's result in a store: by its path, sizes and times, not by its content, which nobody has read yet;
        "" for what none is kept of."""
        if not self.kept or self.units[place].row is not None:
            return ""
        return self._keys[place * _KEY_NBYTES : (place + 1) * _KEY_NBYTES].hex()

    def at(self, places: Sequence[int]) -> Sequence[Piece[UnitItem]]:
        """Those at these places, made when they are asked for."""
        return self if len(places) == len(self) else _Some(self, places)

    def _hold(self, place: int, unit: Unit, identity: Identity) -> None:
        if unit.remote is not None:
            return
        # Places of what is here come first, so that the arrays end where remote files begin.
        nbytes, time_ns = (identity[0][1], identity[0][2]) if len(identity) == 1 else (0, 0)
        plain = len(identity) == 1 and not identity[0][0] and isinstance(time_ns, int)
        if not plain:
            self._others[place] = identity
        self._sizes.append(nbytes)
        self._times.append(time_ns if isinstance(time_ns, int) else 0)


class _Some(_Made):
    def __init__(self, pieces: UnitPieces, places: Sequence[int]) -> None:
        self._pieces, self._places = pieces, places

    def __len__(self) -> int:
        return len(self._places)

    def piece(self, place: int) -> Piece[UnitItem]:
        return self._pieces.piece(self._places[place])


def identity_of(place: Path) -> Identity:
    """What a file, or every file below a folder, is known by; nothing for what is not there."""
    try:
        status = place.stat()
    except OSError:
        return ()
    if not stat.S_ISDIR(status.st_mode):
        return (("", status.st_size, status.st_mtime_ns),)
    found: list[tuple[str, int, int]] = []
    for here, below, names in os.walk(place):
        below.sort()
        for name in sorted(names):
            inside = Path(here) / name
            found += _status(inside, inside.relative_to(place).as_posix())
    return tuple(found)


def _known(unit: Unit) -> Identity:
    return identity_of(unit.place) if unit.remote is None else (("", unit.remote.size, unit.remote.tag),)


def _status(place: Path, name: str) -> Iterator[tuple[str, int, int]]:
    try:
        status = place.stat()
    except OSError:
        return
    yield name, status.st_size, status.st_mtime_ns
