"""The readers in their order, each imported when a file might be of its format.

Opening a small file must not cost the import of every format there is: importing all readers takes longer than reading
the header does. A slot's first look is a necessary condition, cheap and without the reader's own code; the reader's
`claims` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar, overload

from inspector.readers.archives.tar_directory import is_tar
from inspector.readers.archives.zip_directory import find_member
from inspector.readers.entry import FolderReader, Peek, Reader

Look = Callable[[Peek], bool]
Kind = TypeVar("Kind", Reader, FolderReader)


@dataclass(frozen=True, slots=True)
class Slot(Generic[Kind]):
    """home: the module below `inspector.readers` whose `READER` it is. may: False where it cannot be that format."""

    home: str
    may: Look = lambda peek: True

    @property
    def reader(self) -> Kind:
        """The entry; its module is imported now."""
        found: Kind = import_module(f"inspector.readers.{self.home}").READER
        return found


class Shelf(Sequence[Kind]):
    """All readers of one kind. As a sequence it holds them all; `for_file` imports only those that may claim a file."""

    def __init__(self, *slots: Slot[Kind]) -> None:
        self.slots: tuple[Slot[Kind], ...] = slots

    def for_file(self, peek: Peek) -> Iterator[Kind]:
        """Those whose first look does not rule them out, in order."""
        return (slot.reader for slot in self.slots if slot.may(peek))

    def __len__(self) -> int:
        return len(self.slots)

    @overload
    def __getitem__(self, index: int) -> Kind: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Kind, ...]: ...
    def __getitem__(self, index: int | slice) -> Kind | tuple[Kind, ...]:
        if isinstance(index, slice):
            return tuple(slot.reader for slot in self.slots[index])
        found: Kind = self.slots[index].reader
        return found


def starts(*magic: bytes) -> Look:
    """Begins with one of these."""
    return lambda peek: peek.head.startswith(magic)


def has(at: int, magic: bytes) -> Look:
    """Has these bytes at that place."""
    return lambda peek: peek.head[at : at + len(magic)] == magic


def contains(mark: bytes) -> Look:
    """Has these bytes somewhere in its head."""
    return lambda peek: mark in peek.head


def zip_with(*names: str) -> Look:
    """A zip with one of these members in its top folder, or beside it."""

    def look(peek: Peek) -> bool:
        directory = peek.directory
        if directory is None or not directory.members:
            return False
        top = directory.members[0].name.partition("/")[0]
        return any(find_member(directory, f"{top}/{n}") or find_member(directory, n) for n in names)

    return look


def zip_of(ending: str) -> Look:
    """A zip whose first file has this ending."""

    def look(peek: Peek) -> bool:
        files = (m.name for m in peek.directory.members if not m.name.endswith("/")) if peek.directory else iter(())
        return next(files, "").lower().endswith(ending)

    return look


def beside_metadata(peek: Peek) -> bool:
    """A zip that could be one of a torch.distributed.checkpoint folder."""
    if not peek.is_zip:
        return False
    folder = peek.folder
    known = folder is not None and any(folder.size_of(name) is not None for name in (".metadata", "__0.metadata"))
    return known or peek.source.name.endswith(".distcp")


def is_archive(peek: Peek) -> bool:
    """A zip or a tar."""
    return peek.is_zip or is_tar(peek.head)


def either(*looks: Look) -> Look:
    """One of several."""
    return lambda peek: any(look(peek) for look in looks)
