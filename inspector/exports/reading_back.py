"""What was written against what was to be written: by our own reader and by the format's own library, bit for bit.

One block is in memory at a time. It is made anew from the file it came from, so what is compared is what stands there.
The library maps what it reads; it is opened again every so often, so that not the whole file stays mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from inspector.checkpoint.data import is_stored_as
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import InspectorError
from inspector.exports.stream import Block, Entry, Stream, Tick, dtype_name
from inspector.exports.writers.entry import Writer
from inspector.exports.writers.pth import load
from inspector.exports.writers.raw import raw_bytes
from inspector.keys.report import Proof
from inspector.readers import open_checkpoint
from inspector.units import counted, human_bytes

# Called with every tensor as the format's own library reads it.
Look = Callable[[str, Tensor], None]

_MAPPED_NBYTES = 32_000_000
_TENSOR_NBYTES = 64_000  # What opening a file of one tensor more costs, in bytes that could be mapped for it.
_WHOLE_NBYTES = 1_000_000_000


def prove_written(
    where: Path, parts: Sequence[tuple[Path, Stream]], entry: Writer, look: Look, tick: Tick
) -> tuple[Proof, Proof]:
    """("reread", "library"). where: the file, or the folder of the shards. parts: each file with what it must hold."""
    try:
        written = open_checkpoint(where)
    except InspectorError as error:
        return _failed("reread", f"The written file does not read back: {error.says}"), _skipped(entry)
    try:
        return _compare(written, parts, entry, look, tick)
    except InspectorError as error:
        return _failed("reread", f"The written file does not read back: {error.says}"), _skipped(entry)
    finally:
        written.source.close()


def _compare(
    written: Checkpoint, parts: Sequence[tuple[Path, Stream]], entry: Writer, look: Look, tick: Tick
) -> tuple[Proof, Proof]:
    names = {name for _, stream in parts for name in stream.names}
    found = next((s for s in written.state_dicts if len(s.tensors) == len(names)), None)
    infos = {t.name: t for t in (found.tensors if found else ())}
    if set(infos) != names:
        return _failed("reread", "The written file has other names than were to be written."), _skipped(entry)
    partly = False
    for path, stream in parts:
        library = _Library(path, entry, stream)
        partly = partly or library.whole is None
        if library.names != set(stream.names):
            return _skipped(entry, "reread"), _failed("library", "The format's own library finds other names.")
        for block, memory in stream.made(tick):
            for each in block.entries:
                tensor = each.of(memory)
                if not _reads_back(written, infos[each.name], block, each, tensor):
                    return _failed("reread", f"{each.name} reads back otherwise than it was written."), _skipped(entry)
                if not library.agrees(each.name, tensor, look):
                    says = f"The format's own library reads {each.name} otherwise."
                    return _skipped(entry, "reread"), _failed("library", says)
    count = counted(len(names), "tensor")
    reread = f"Read back without executing anything: {count} bit for bit equal."
    says = f"{entry.library} reads {count} bit for bit equal."
    if partly:
        says = (
            f"{entry.library} takes a file like this whole, and above {human_bytes(_WHOLE_NBYTES)} only names, shapes "
            f"and types were compared with it: {count}."
        )
    return Proof(id="reread", says=reread, passed=True), Proof(id="library", says=says, passed=True)


def _reads_back(written: Checkpoint, info: TensorInfo, block: Block, entry: Entry, tensor: Tensor) -> bool:
    if info.shape != entry.shape or info.dtype != dtype_name(block.dtype):
        return False
    return is_stored_as(written, info, raw_bytes(tensor))


class _Library:
    """The file as its own library reads it. whole: its tensors; None where it would hold too much of them at once."""

    def __init__(self, path: Path, entry: Writer, stream: Stream) -> None:
        self._path, self._entry = path, entry
        self._most = _MAPPED_NBYTES + _TENSOR_NBYTES * len(stream.names)
        self._mapped = 0
        self.whole: Mapping[str, Tensor] | None = None
        if entry.reads_whole and stream.nbytes > _WHOLE_NBYTES:
            self._bare = load(path, mmap=False, device="meta")
        else:
            self.whole = self._bare = entry.read(path)
        self.names = set(self._bare)

    def agrees(self, name: str, tensor: Tensor, look: Look) -> bool:
        """Whether the library reads the same, type and shape and bits."""
        if self.whole is None:
            bare = self._bare[name]
            look(name, tensor)
            return bool(bare.dtype is tensor.dtype and bare.shape == tensor.shape)
        self._mapped += tensor.numel() * tensor.itemsize
        if self._mapped > self._most and not self._entry.reads_whole:
            self.whole = self._bare = self._entry.read(self._path)
            self._mapped = 0
        other = self.whole[name]
        if other.dtype is not tensor.dtype or other.shape != tensor.shape or not same_bits(other, tensor):
            return False
        look(name, other)
        return True


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Equal bytes, NaN and negative zero included. Both of one type and shape."""
    return np.array_equal(raw_bytes(one), raw_bytes(other))


def _failed(name: str, says: str) -> Proof:
    return Proof(id=name, says=says, passed=False)


def _skipped(entry: Writer, name: str = "library") -> Proof:
    return Proof(id=name, says="Not compared any further.", passed=None)
