"""What a writer is: one file format that a state dict can be written in, and read back from by its own library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from inspector.exports.stream import Stream, Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One entry of `WRITERS`.

    id: what `writer=` names. suffix: of a file name. says: one sentence for the choice. library: what reads it.
    write: the stream to a path, with provenance as text, one block in memory at a time; returns what of it the format
    could not carry, as sentences.
    read: the file it wrote, by the format's own library, numbers only when a tensor is asked for. Only ever called on a
    file this package has just written. reads_whole: the library cannot do so, and takes all numbers at once.
    keeps_text: whether provenance and metadata travel along.
    shard_name: of the one file of a folder, whose shards and index are named after it.
    """

    id: str
    suffix: str
    says: str
    library: str
    write: Callable[[Stream, Path, Mapping[str, str], Tick], tuple[str, ...]]
    read: Callable[[Path], Mapping[str, Tensor]]
    keeps_text: bool
    shard_name: str
    reads_whole: bool = False
