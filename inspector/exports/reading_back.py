"""What was written against what was to be written: by our own reader and by the format's own library, bit for bit.

One block is in memory at a time. It is made anew from the file it came from, so what is compared is what stands there.
The library maps what it reads; it is opened again every so often, so that not the whole file stays mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from inspector.checkpoint.data import is_stored_as
from inspector.checkpoint.raw_tensor import RawTensor, same_bits
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import InspectorError
from inspector.exports.stream import Stream, Tick
from inspector.exports.writers.entry import Writer
from inspector.installed import is_installed
from inspector.keys.report import Proof
from inspector.readers import open_checkpoint
from inspector.units import counted, human_bytes

# Called with every tensor as the format's own library reads it, where that is here.
Look = Callable[[str, RawTensor], None]

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
    missing = next((package for package in entry.packages if not is_installed(package)), "")
    partly = False
    for path, stream in parts:
        library = _Library(path, entry, stream) if not missing else None
        if library is not None:
            partly = partly or library.whole is None
            if library.names != set(stream.names):
                return _skipped(entry, "reread"), _failed("library", "The format's own library finds other names.")
        for block, memory in stream.made(tick):
            for each in block.entries:
                tensor = each.of(memory, block.dtype)
                if not _reads_back(written, infos[each.name], tensor):
                    return _failed("reread", f"{each.name} reads back otherwise than it was written."), _skipped(entry)
                if library is None:
                    # Equal bit for bit to what stands in the file.
                    look(each.name, tensor)
                elif not library.agrees(each.name, tensor, look):
                    says = f"The format's own library reads {each.name} otherwise."
                    return _skipped(entry, "reread"), _failed("library", says)
    count = counted(len(names), "tensor")
    cast_to = next((stream.cast_to for _, stream in parts if stream.cast_to), "")
    equal = f"equal after the cast to {cast_to}" if cast_to else "bit for bit equal"
    reread = f"Read back without executing anything: {count} {equal}."
    says = f"{entry.library} reads {count} {equal}."
    if partly:
        says = (
            f"{entry.library} takes a file like this whole, and above {human_bytes(_WHOLE_NBYTES)} only names, shapes "
            f"and types were compared with it: {count}."
        )
    if missing:
        says = f"Reading it by {entry.library} was not tried: {missing} is not installed."
    passed = None if missing else True
    return Proof(id="reread", says=reread, passed=True), Proof(id="library", says=says, passed=passed)


def _reads_back(written: Checkpoint, info: TensorInfo, tensor: RawTensor) -> bool:
    if info.shape != tensor.shape or info.dtype != tensor.dtype:
        return False
    return is_stored_as(written, info, tensor.raw_bytes)


class _Library:
    """The file as its own library reads it. whole: its tensors; None where it would hold too much of them at once."""

    def __init__(self, path: Path, entry: Writer, stream: Stream) -> None:
        self._path, self._entry = path, entry
        self._most = _MAPPED_NBYTES + _TENSOR_NBYTES * len(stream.names)
        self._mapped = 0
        self.whole: Mapping[str, RawTensor] | None = None
        if entry.read_bare is not None and stream.nbytes > _WHOLE_NBYTES:
            self._bare = entry.read_bare(path)
        else:
            self.whole = self._bare = entry.read(path)
        self.names = set(self._bare)

    def agrees(self, name: str, tensor: RawTensor, look: Look) -> bool:
        """Whether the library reads the same, type and shape and bits."""
        if self.whole is None:
            bare = self._bare[name]
            look(name, tensor)
            return bare.dtype == tensor.dtype and bare.shape == tensor.shape
        self._mapped += tensor.array.nbytes
        if self._mapped > self._most and self._entry.read_bare is None:
            self.whole = self._bare = self._entry.read(self._path)
            self._mapped = 0
        other = self.whole[name]
        if not same_bits(other, tensor):
            return False
        look(name, other)
        return True


def _failed(name: str, says: str) -> Proof:
    return Proof(id=name, says=says, passed=False)


def _skipped(entry: Writer, name: str = "library") -> Proof:
    return Proof(id=name, says="Not compared any further.", passed=None)
