"""The elements of one chunk of a torch.distributed.checkpoint: a torch.save file inside a data file, opened on demand.

Listing a checkpoint of thousands of chunks needs only its .metadata; what a chunk's own header says is looked at when
its numbers are wanted, and compared with what the .metadata said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from inspector.checkpoint.assembled_source import AssembledSource, Piece
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.joined_source import SliceSource
from inspector.checkpoint.layout import is_contiguous, span_of, why_unreadable
from inspector.checkpoint.source import ByteSource, check_range
from inspector.checkpoint.types import Checkpoint
from inspector.errors import CorruptFile, ReadError
from inspector.limits import Limits
from inspector.units import human_shape


class ChunkSource:
    """Row-major bytes of the one tensor saved in nbytes of `file` from `offset`, which should be `sizes` of `dtype`.

    Reading raises CorruptFile when something else is there. what: whose chunk it is, for messages.
    """

    __slots__ = ("_found", "dtype", "file", "limits", "nbytes", "offset", "size", "sizes", "what")

    def __init__(
        self,
        file: ByteSource,
        offset: int,
        nbytes: int,
        *,
        dtype: str,
        sizes: tuple[int, ...],
        what: str,
        limits: Limits,
    ) -> None:
        self.file = file
        self.offset = offset
        self.nbytes = nbytes
        self.dtype = dtype
        self.sizes = sizes
        self.what = what
        self.limits = limits
        self.size = math.prod(sizes) * DTYPES[dtype].itemsize
        self._found: ByteSource | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.what} in {self.file.name}"

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        return self._resolved().read(offset, n) if n else b""

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        wanted = list(ranges)
        for offset, n in wanted:
            check_range(self.name, self.size, offset, n)
        return self._resolved().read_many(wanted)

    def close(self) -> None:
        self.file.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.file, self.offset, self.nbytes, self.dtype, self.sizes, self.what, self.limits))

    def _resolved(self) -> ByteSource:
        if self._found is None:
            # Imported here: opening lists the reader that uses this.
            from inspector.readers.opening import open_checkpoint

            inner = SliceSource(self.file, self.offset, self.nbytes, self.name)
            self._found = payload(open_checkpoint(inner, limits=self.limits), self.dtype, self.sizes, self.name)
        return self._found


def _rebuild(
    file: ByteSource, offset: int, nbytes: int, dtype: str, sizes: tuple[int, ...], what: str, limits: Limits
) -> ChunkSource:
    return ChunkSource(file, offset, nbytes, dtype=dtype, sizes=sizes, what=what, limits=limits)


def payload(checkpoint: Checkpoint, dtype: str, sizes: tuple[int, ...], name: str) -> ByteSource:
    """The row-major bytes of the one tensor of a checkpoint. Raises CorruptFile when it is not as announced."""
    wrong = mismatch(checkpoint, dtype, sizes)
    if wrong:
        raise CorruptFile(f"{name} {wrong}.", hint="Get the whole folder again.")
    tensor = checkpoint.tensors[0]
    reason = why_unreadable(tensor)
    storage = checkpoint.storages.get(tensor.storage_id or "")
    if reason or storage is None or storage.offset is None:
        raise ReadError(f"{name} cannot be read as numbers: {reason or 'its storage is not in the file'}.")
    k = DTYPES[dtype].itemsize
    if storage.deflated_nbytes is not None or (storage.big_endian and k > 1):
        how = "compressed" if storage.deflated_nbytes is not None else "written on a big-endian machine"
        raise ReadError(f"{name} is {how}, which is not read in a distributed checkpoint.")
    if span_of(tensor)[1] * k > storage.present_nbytes:
        raise CorruptFile(
            f"{name} should hold {span_of(tensor)[1] * k:,} bytes; {storage.present_nbytes:,} are there.",
            hint="Get the whole folder again.",
        )
    start = storage.offset + tensor.offset * k
    if is_contiguous(tensor):
        return SliceSource(checkpoint.source, start, math.prod(sizes) * k, name)
    piece = Piece((0,) * len(sizes), sizes, checkpoint.source, start, tensor.stride)
    return AssembledSource([piece], shape=sizes, itemsize=k, name=name)


def mismatch(checkpoint: Checkpoint, dtype: str, sizes: tuple[int, ...]) -> str:
    """How a chunk differs from what the .metadata says about it, "" when it does not."""
    expected = f"{human_shape(sizes)[:80]} {dtype}"
    if len(checkpoint.tensors) != 1:
        return f"should hold one tensor, {expected}, and holds {len(checkpoint.tensors):,}"
    tensor = checkpoint.tensors[0]
    if (tensor.dtype, tensor.shape) != (dtype, sizes):
        return f"holds {human_shape(tensor.shape)[:80]} {tensor.dtype}; the .metadata says {expected}"
    return ""
