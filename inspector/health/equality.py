"""Are two tensors of a file equal, and how far are two sets of weights apart? Statistics first, then the bytes.

What was measured of two equal tensors is equal, so that nearly all pairs are told apart without another read; only what
remains is read again, within a budget.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import iter_chunks, to_float32
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.errors import InspectorError
from inspector.health.columns import Columns, Flags
from inspector.units import human_bytes
from inspector.weights.report import TensorStatistics

_CHUNK_NBYTES = 1 << 22
Pair = tuple[TensorInfo, TensorInfo]


@dataclass(slots=True)
class Budget:
    """How many bytes may still be read. what: they are read for. left_out: tensors that were not, for want of it."""

    nbytes: int
    what: str = "compared with others"
    left_out: list[str] = field(default_factory=list)
    #: Half a sentence about them.
    why: str = field(init=False)

    def __post_init__(self) -> None:
        self.why = f"not {self.what}: up to {human_bytes(self.nbytes)} are read again for that"

    def take(self, tensor: TensorInfo, times: int = 2) -> bool:
        """Whether the tensor may be read this often; it is counted."""
        if tensor.nbytes * times > self.nbytes:
            self.left_out.append(tensor.name)
            return False
        self.nbytes -= tensor.nbytes * times
        return True


def same_place(one: TensorInfo, other: TensorInfo) -> bool:
    """Whether both show the same elements of one storage."""
    return one.storage_id is not None and _place(one) == _place(other)


def _place(tensor: TensorInfo) -> tuple[object, ...]:
    return tensor.storage_id, tensor.offset, tensor.shape, tensor.stride, tensor.dtype


def may_equal(one: TensorStatistics, other: TensorStatistics) -> bool:
    """False where what was measured tells them apart."""
    return _numbers(one) == _numbers(other) and one.table == other.table


def _numbers(t: TensorStatistics) -> tuple[object, ...]:
    # NaN (of an all-NaN tensor) differs from itself: as text it does not.
    moments = tuple(repr(number) for number in (t.minimum, t.maximum, t.mean, t.std))
    return (t.shape, t.dtype, t.nan, t.infinite, t.zero, t.first_non_finite, *moments)


def are_equal(checkpoint: Checkpoint, one: TensorInfo, other: TensorInfo, budget: Budget) -> bool | None:
    """Whether their bytes are equal; None where that was not looked at or cannot be read."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if same_place(one, other):
        return True
    if not budget.take(one):
        return None
    try:
        chunks = zip(
            iter_chunks(checkpoint, one, chunk_nbytes=_CHUNK_NBYTES),
            iter_chunks(checkpoint, other, chunk_nbytes=_CHUNK_NBYTES),
            strict=True,
        )
        return all(a.tobytes() == b.tobytes() for a, b in chunks)
    except (InspectorError, OSError, ValueError, MemoryError):
        return None


def ends_shared(columns: Columns, among: Flags) -> Flags:
    """Of those flagged, which have both their smallest and their largest number in common with another."""
    places = np.flatnonzero(among & (columns.finite > 0) & (columns.minimum < columns.maximum))
    places = places[np.lexsort((columns.maximum[places], columns.minimum[places]))]
    low, high = columns.minimum[places], columns.maximum[places]
    same = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    found = np.zeros(len(among), np.bool_)
    found[places[1:][same]] = found[places[:-1][same]] = True
    return found


def likely_copies(statistics: Iterable[tuple[TensorInfo, TensorStatistics]]) -> Iterator[tuple[TensorInfo, ...]]:
    """Tensors whose statistics are equal, two or more at a time, in the file's order. Constant ones do not count."""
    varied = [(tensor, t) for tensor, t in statistics if t.finite and t.minimum < t.maximum]
    # Two numbers tell nearly all apart, without being written out.
    times = Counter((t.minimum, t.maximum) for _, t in varied)
    groups: dict[tuple[object, ...], list[tuple[TensorInfo, TensorStatistics]]] = defaultdict(list)
    for tensor, t in varied:
        if times[t.minimum, t.maximum] > 1:
            groups[_numbers(t)].append((tensor, t))
    for group in groups.values():
        tables: dict[object, list[TensorInfo]] = defaultdict(list)
        for tensor, t in group if len(group) > 1 else ():
            tables[t.table].append(tensor)
        yield from (tuple(same) for same in tables.values() if len(same) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resemblance:
    """Two tensors of one shape as vectors, in float64. apart: ||b - a||^2. own, other: ||a||^2 and ||b||^2."""

    apart: float
    own: float
    other: float

    @property
    def relative(self) -> float:
        """||b - a|| / ||a||; infinite where a is zero and b is not."""
        return math.sqrt(self.apart / self.own) if self.own else math.inf if self.apart else 0.0

    @property
    def cosine(self) -> float:
        """Of the angle between them; 1 for two of zeros, 0 where one is."""
        if not self.own or not self.other:
            return float(self.own == self.other)
        return (self.own + self.other - self.apart) / (2 * math.sqrt(self.own) * math.sqrt(self.other))


def resemblance(checkpoint: Checkpoint, a: TensorInfo, b: TensorInfo, budget: Budget) -> Resemblance | None:
    """How b lies to a; None where they are no real numbers of one shape, not finite, too large or cannot be read."""
    if a.shape != b.shape or not _is_real(a) or not _is_real(b) or not budget.take(a):
        return None
    try:
        found = _squares(checkpoint, a, b)
    except (InspectorError, OSError, ValueError, MemoryError):
        return None
    return found if math.isfinite(found.apart + found.own + found.other) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """relative: ||b - a|| / ||a|| over the elements of the tensors that were compared. tensors: how many."""

    relative: float
    tensors: int


def distance(found: Sequence[Resemblance]) -> Distance | None:
    """How far the second tensors are from the first, all together; None where nothing was compared."""
    whole = sum(each.own for each in found)
    apart = sum(each.apart for each in found)
    return Distance(relative=math.sqrt(apart / whole), tensors=len(found)) if whole > 0 else None


def _is_real(tensor: TensorInfo) -> bool:
    dtype = find_dtype(tensor.dtype)
    return dtype is not None and dtype.floating and "complex" not in dtype.name


def _squares(checkpoint: Checkpoint, a: TensorInfo, b: TensorInfo) -> Resemblance:
    """The types of both may differ."""
    apart = own = other = 0.0
    step = 1 << 20
    for one, two in zip(_values(checkpoint, a, step), _values(checkpoint, b, step), strict=True):
        x, y = one.astype(np.float64), two.astype(np.float64)
        apart += float(np.dot(y - x, y - x))
        own += float(np.dot(x, x))
        other += float(np.dot(y, y))
    return Resemblance(apart=apart, own=own, other=other)


def _values(checkpoint: Checkpoint, tensor: TensorInfo, elements: int) -> Iterator[NDArray[np.float32]]:
    dtype = find_dtype(tensor.dtype)
    itemsize = dtype.itemsize if dtype is not None else 1
    for chunk in iter_chunks(checkpoint, tensor, chunk_nbytes=elements * itemsize):
        yield to_float32(chunk, tensor.dtype)
