"""The index.json of a sharded checkpoint, opened itself: it stands for the folder that it lies in."""

from __future__ import annotations

from inspector.checkpoint.source import is_distant
from inspector.checkpoint.types import Checkpoint
from inspector.errors import UnknownFormat
from inspector.readers.entry import FolderPeek, Peek, Reader
from inspector.readers.folders.sharded.layout import looks_like_index, read_index
from inspector.readers.folders.sharded.reader import read_sharded
from inspector.units import counted

_HINT = "Open the folder that it lies in, or put it into one zip or tar with those files and open that."
_HINT_AT_ADDRESS = "Open it by its address alone, or name the addresses of those files, each by itself."


def _claims(peek: Peek) -> str:
    return "JSON with a weight_map" if looks_like_index(peek.head) else ""


def _read(peek: Peek) -> Checkpoint:
    index = read_index(peek.source, peek.source.name, peek.limits)
    if peek.folder is None:
        files = ", ".join(file[:80] for file in index.files[:2]) + (" …" if len(index.files) > 2 else "")
        raise UnknownFormat(
            f"{peek.source.name} is the index of {counted(len(index.weight_map), 'tensor')} in "
            f"{counted(len(index.files), 'file')} ({files}), which did not come with it.",
            hint=_HINT_AT_ADDRESS if is_distant(peek.source) else _HINT,
        )
    return read_sharded(FolderPeek(peek.folder, peek.opening.deeper()), index)


READER = Reader(
    id="shard-index",
    says="index.json of a sharded checkpoint",
    suffixes=(".safetensors.index.json", ".bin.index.json"),
    claims=_claims,
    read=_read,
)
