"""What a writer is: one file format that a state dict can be written in, and read back from by its own library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.exports.stream import Stream, Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One entry of `WRITERS`.

    id: what `writer=` names. suffix: of a file name. says: one sentence for the choice. library: what reads it.
    write: the stream to a path, with provenance as text, one block in memory at a time; returns what of it the format
    could not carry, as sentences.
    packages: what that library takes to be installed; nothing else here needs them.
    read: the file it wrote, by the format's own library, numbers only when a tensor is asked for. Only ever called on a
    file this package has just written. read_bare: for a library that takes all numbers at once, names, shapes and types
    alone.
    keeps_text: whether provenance and metadata travel along.
    shard_name: of the one file of a folder, whose shards and index are named after it.
    """

    id: str
    suffix: str
    says: str
    library: str
    write: Callable[[Stream, Path, Mapping[str, str], Tick], tuple[str, ...]]
    packages: tuple[str, ...]
    read: Callable[[Path], Mapping[str, RawTensor]]
    keeps_text: bool
    shard_name: str
    read_bare: Callable[[Path], Mapping[str, RawTensor]] | None = None
