"""Statistics of tensor values: one object per tensor from one pass over its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from inspector.short_repr import short_repr

#: Bytes, which lie in a file where they were too many (`giants/spilled.py`): equal and hashed alike.
PackedBytes: TypeAlias = bytes | memoryview

#: Elements of a page: what zeroed and repeated stretches are counted in.
PAGE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTable:
    """A sparse histogram over the 65,536 cells that the top 16 bits of a float32 value name.

    codes: ascending cell codes, uint16 in native byte order. counts: elements per cell, uint64 likewise. Packed bytes
    and not pairs of Python integers: a float32 layer fills about 4,000 cells, 40 kB this way and 500 kB as tuples.
    Iterating gives (code, count) pairs. NaNs are all in cells with a mantissa (never in the two infinity cells).
    of: "" for these cells; a type of 16 bits ("float16", "int16", "uint16") whose own bit patterns the codes are.
    """

    codes: PackedBytes = b""
    counts: PackedBytes = b""
    of: str = ""

    def __len__(self) -> int:
        return len(self.codes) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(memoryview(self.codes).cast("H"), memoryview(self.counts).cast("Q"), strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What each row along axis 0 and each column along axis 1 hold, of a floating tensor with two or more dimensions.

    count: rows, shape[0]. length: elements of a row. columns: shape[1].
    largest: the largest magnitude of each row, float32, native byte order; NaN counts as infinite.
    total: the sum of the magnitudes of each row, float32, over the finite elements. across: the same of each column.
    `rows.py` gives them as arrays.
    """

    count: int
    length: int
    columns: int
    largest: PackedBytes
    total: PackedBytes
    across: PackedBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The tensor cut into pages of `PAGE` elements in row-major order, the last one left out where it is not full.

    zero: pages of nothing but zeros. zero_run: the most of them in a row, beginning at page zero_at.
    repeated: pages whose bits have the sum and the exclusive or of another page's before them, and that hold more than
    one value: very likely its copy. repeated_run: the most of them in a row at one distance, beginning at page
    repeated_at, copies (likely) of those from page repeated_from.
    """

    count: int = 0
    zero: int = 0
    zero_run: int = 0
    zero_at: int = 0
    repeated: int = 0
    repeated_run: int = 0
    repeated_at: int = 0
    repeated_from: int = 0


class NumberKind(StrEnum):
    """What the numbers of a tensor are whose stored elements are no plain numbers.

    PARTS: real and imaginary ones. STORED: what a sparse tensor stores. VALUES: what quantised codes mean.
    CODES: integers that are no numbers of the network in themselves.
    """

    PARTS = "parts"
    STORED = "stored"
    VALUES = "values"
    CODES = "codes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """What was measured in place of a tensor's stored elements.

    dtype: the type that the numbers were measured in. says: what they are ("values of Q4_K blocks").
    """

    kind: NumberKind
    dtype: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStatistics:
    """What one read over a tensor tells. Moments are over the finite elements, in float64.

    shape, dtype: the tensor's, as the file declares them. numel: numbers measured, which is the tensor's elements
    except where `decoding` is set: parts of a complex tensor (two an element), stored values of a sparse one.

    minimum .. rms: NaN when no element is finite. std: of the population (divided by n, not n - 1).
    nan, infinite, zero: element counts (zero of either sign).
    first_non_finite: index in row-major order of the element with the first NaN or infinity, None without one; of a
    sparse tensor, among the stored values.
    table: how many elements are in each cell of float32's top 16 bits (exact for bfloat16, float8 and 8-bit integers;
    finite values beyond float32's range are in its outermost finite cell); histograms, quantiles and fingerprints come
    from it without another read. It merges by addition.
    rows: per row and column; None for fewer than two dimensions, other than floats, and far too many rows.
    values: the elements of a short one-dimensional tensor, float64, native byte order; b"" for others.
    fits: the shortest type that holds every element without loss, of a float32 or float64 tensor ("bfloat16",
    "float16", "float32"); "" where it is its own, and of other types. NaN and infinity fit everywhere.
    distinct: how many different values there are, None where more than 256 or not known; zeros of both signs are one.
    fours: groups of four neighbours, of as many as numel // 4, in which two or more are zero; counted only where
    zeros are frequent, so that a low number is a lower bound.
    pages: zeroed and repeated stretches.
    decoding: what the numbers are, None where they are the elements as they are stored. Rows are then rows of the
    decoded numbers (both parts of a complex one), None for sparse tensors; `fits` is "" and
    `distinct` counted for types of 8 and 16 bits only.
    """

    name: str
    path: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    numel: int
    minimum: float
    maximum: float
    mean: float
    std: float
    rms: float
    nan: int
    infinite: int
    zero: int
    first_non_finite: int | None
    table: ValueTable
    rows: Rows | None = None
    values: PackedBytes = b""
    fits: str = ""
    distinct: int | None = None
    fours: int = 0
    pages: Pages = Pages()
    decoding: Decoding | None = None

    @property
    def numbers_dtype(self) -> str:
        """The type that the numbers were measured in."""
        return self.decoding.dtype if self.decoding is not None else self.dtype

    @property
    def finite(self) -> int:
        """Elements that are neither NaN nor infinite."""
        return self.numel - self.nan - self.infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """edges: (bins + 1,) ascending; counts: (bins,), fractional where a table cell was split between two bins."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The layers x bins heat strip of a file.

    names: rows, in file order. edges: common bins, (bins + 1,), symmetric around zero. shares: rows x bins,
    fraction of that tensor's elements in the bin. scale: what a row was divided by, so that layers compare.
    """

    names: tuple[str, ...]
    edges: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    scale: str


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class WeightsReport:
    """Statistics of one state dict. skipped: (name, why) of tensors that could not be read as numbers."""

    __repr__ = short_repr

    state_dict: tuple[str, ...]
    tensors: tuple[TensorStatistics, ...]
    skipped: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def decodings(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(what was measured, names of the tensors), where it is not the elements as they are stored."""
        names: dict[str, list[str]] = {}
        for t in self.tensors:
            if t.decoding is not None:
                names.setdefault(t.decoding.says, []).append(t.name)
        return tuple((says, tuple(of)) for says, of in names.items())
