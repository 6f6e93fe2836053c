"""One tensor out of pieces that lie in several files: its row-major bytes, put together when they are read.

Training clusters save a tensor as boxes (torch.distributed.checkpoint, FSDP, tensor parallelism) or as runs of a
flattened vector (DeepSpeed ZeRO). A flat run is a box of a tensor with one axis.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import EllipsisType
from typing import TYPE_CHECKING

from inspector.checkpoint.layout import row_major
from inspector.checkpoint.source import ByteSource, check_range
from inspector.errors import CorruptFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_JOINED_NBYTES = 65536
_MOST_WASTE = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a tensor and where its elements lie.

    offsets, sizes: in elements, one each per axis of the tensor. source: None when the piece is missing or cannot be
    read, and `says` then tells why. start: byte of its first element in the source. strides: in elements, there;
    None when it lies there in row-major order without gaps.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    source: ByteSource | None
    start: int = 0
    strides: tuple[int, ...] | None = None
    says: str = ""


class AssembledSource:
    """The row-major bytes of one tensor of `shape`, itemsize bytes per element.

    What a read costs is proportional to what it asks for. Where pieces overlap, the later one counts. Reading an
    element that no piece holds raises CorruptFile; nothing is ever made up for it.
    """

    def __init__(self, pieces: Sequence[Piece], *, shape: Sequence[int], itemsize: int, name: str) -> None:
        self.shape = tuple(shape)
        self.itemsize = itemsize
        self.name = name
        self.size = math.prod(self.shape) * itemsize
        self._steps = row_major(self.shape)
        for piece in pieces:
            self._check(piece)
        held = [(self._span(piece), piece) for piece in pieces if math.prod(piece.sizes)]
        # Sorted by their first element; the sort is stable, so the later of two equal ones stays the later.
        held.sort(key=lambda item: item[0][0])
        self.pieces = tuple(piece for _, piece in held)
        self._firsts = [span[0] for span, _ in held]
        # How far the pieces up to each one reach: where to stop looking backwards.
        self._reach = list(accumulate((span[1] for span, _ in held), max))

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        if not n:
            return b""
        import numpy as np  # Readers load this module, and must not load numpy to list a file.

        first, last = offset // self.itemsize, -(-(offset + n) // self.itemsize)
        made = np.empty(last - first, dtype=f"V{self.itemsize}")
        covered = np.zeros(last - first, dtype=bool)
        for start, offsets, sizes in _regions(first, last, self.shape):
            stop = start + math.prod(sizes)
            for piece in self._near(start, stop):
                self._copy(piece, offsets, sizes, made[start - first : stop - first], covered[start - first :])
        if not covered.all():
            raise self._gap(first + int(np.argmin(covered)))
        skip = offset - first * self.itemsize
        return made.tobytes()[skip : skip + n]

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]

    def close(self) -> None:
        for piece in self.pieces:
            if piece.source is not None:
                piece.source.close()

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.pieces, self.shape, self.itemsize, self.name))

    def _check(self, piece: Piece) -> None:
        sizes, offsets = piece.sizes, piece.offsets
        strides = piece.strides if piece.strides is not None else sizes
        fits = len(sizes) == len(offsets) == len(strides) == len(self.shape) and min(strides, default=0) >= 0
        if not fits or any(
            o < 0 or s < 0 or o + s > whole for o, s, whole in zip(offsets, sizes, self.shape, strict=True)
        ):
            raise CorruptFile(f"A piece of {self.name} does not lie inside its shape {self.shape}.")

    def _span(self, piece: Piece) -> tuple[int, int]:
        """Row-major number of its first element, and of its last one plus 1."""
        first = sum(o * step for o, step in zip(piece.offsets, self._steps, strict=True))
        return first, first + sum((s - 1) * step for s, step in zip(piece.sizes, self._steps, strict=True)) + 1

    def _near(self, start: int, stop: int) -> list[Piece]:
        """The pieces whose spans touch elements start .. stop, the later ones last."""
        at = bisect_left(self._firsts, stop)
        found: list[Piece] = []
        while at > 0 and self._reach[at - 1] > start:
            at -= 1
            found.append(self.pieces[at])
        return found[::-1]

    def _copy(
        self,
        piece: Piece,
        offsets: tuple[int, ...],
        sizes: tuple[int, ...],
        made: NDArray[np.void],
        covered: NDArray[np.bool],
    ) -> None:
        """Put what a piece holds of one region into `made`, and say in `covered` that it is there."""
        import numpy as np
        from numpy.lib.stride_tricks import as_strided

        firsts = [max(a, b) for a, b in zip(offsets, piece.offsets, strict=True)]
        counts = [
            min(a + n, b + m) - first
            for a, n, b, m, first in zip(offsets, sizes, piece.offsets, piece.sizes, firsts, strict=True)
        ]
        if piece.source is None or min(counts, default=1) <= 0:
            return
        strides = piece.strides if piece.strides is not None else row_major(piece.sizes)
        at = sum((f - o) * step for f, o, step in zip(firsts, piece.offsets, strides, strict=True))
        inside = tuple(slice(f - o, f - o + n) for f, o, n in zip(firsts, offsets, counts, strict=True))
        # The axes by how far apart their elements lie in the source, so that what is close is read at once.
        order = sorted(range(len(counts)), key=lambda axis: -strides[axis])
        wanted = [(counts[axis], strides[axis]) for axis in order]
        outer = _outer_axes(wanted, self.itemsize)
        # The ellipsis makes an array even of a scalar's one element.
        part: tuple[slice | EllipsisType, ...] = (*inside, ...)
        into = made.reshape(sizes)[part].transpose(order)
        places = list(np.ndindex(*(n for n, _ in wanted[:outer])))
        inner = tuple(n for n, _ in wanted[outer:])
        span = sum((n - 1) * step for n, step in wanted[outer:]) + 1
        starts = (at + sum(i * step for i, (_, step) in zip(place, wanted, strict=False)) for place in places)
        k = self.itemsize
        raws = piece.source.read_many((piece.start + start * k, span * k) for start in starts)
        for place, raw in zip(places, raws, strict=True):
            flat = np.frombuffer(raw, dtype=made.dtype)
            into[place] = as_strided(flat, inner, tuple(step * k for _, step in wanted[outer:]), writeable=False)
        covered[: math.prod(sizes)].reshape(sizes)[inside] = True

    def _gap(self, element: int) -> CorruptFile:
        place = tuple(element // step % size for step, size in zip(self._steps, self.shape, strict=True))
        for piece in reversed(self._near(element, element + 1)):
            if all(o <= at < o + n for o, n, at in zip(piece.offsets, piece.sizes, place, strict=True)):
                return CorruptFile(
                    f"{self.name}: the piece with element {place} cannot be read: {piece.says or 'it is missing'}.",
                    hint="Get the whole folder again; the other tensors can be read.",
                )
        return CorruptFile(
            f"{self.name}: no piece holds element {place} of its shape {self.shape}.",
            hint="A file of another rank is probably missing; get the whole folder again.",
        )


def _rebuild(pieces: tuple[Piece, ...], shape: tuple[int, ...], itemsize: int, name: str) -> AssembledSource:
    return AssembledSource(pieces, shape=shape, itemsize=itemsize, name=name)


def _outer_axes(wanted: Sequence[tuple[int, int]], itemsize: int) -> int:
    """How many of the (count, stride) axes to walk, one read each, so that no read is mostly waste."""
    for outer in range(len(wanted)):
        count = math.prod(n for n, _ in wanted[outer:])
        span = sum((n - 1) * step for n, step in wanted[outer:]) + 1
        if span <= _MOST_WASTE * count or span * itemsize <= min(_JOINED_NBYTES, 64 * count * itemsize):
            return outer
    return len(wanted)


def _regions(first: int, last: int, shape: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Elements first .. last in row-major order as at most two boxes per axis: (first element, offsets, sizes)."""
    steps = row_major(shape)
    while first < last:
        axis = next((i for i, step in enumerate(steps) if first % step == 0 and step <= last - first), len(shape))
        offsets = tuple(first // step % size for step, size in zip(steps, shape, strict=True))
        if axis == len(shape):  # A scalar.
            yield first, offsets, ()
            return
        count = min(shape[axis] - offsets[axis], (last - first) // steps[axis])
        yield first, offsets, (*(1,) * axis, count, *shape[axis + 1 :])
        first += count * steps[axis]
