"""Statistics of tensor values: one object per tensor from one pass over its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTable:
    """A sparse histogram over the 65,536 cells that the top 16 bits of a float32 value name.

    codes: ascending cell codes, uint16 in native byte order. counts: elements per cell, uint64 likewise. Packed bytes
    and not pairs of Python integers: a float32 layer fills about 4,000 cells, 40 kB this way and 500 kB as tuples.
    Iterating gives (code, count) pairs. NaNs are all in cells with a mantissa (never in the two infinity cells).
    """

    codes: bytes = b""
    counts: bytes = b""

    def __len__(self) -> int:
        return len(self.codes) // 2

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(memoryview(self.codes).cast("H"), memoryview(self.counts).cast("Q"), strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStatistics:
    """What one read over a tensor tells. Moments are over the finite elements, in float64.

    minimum .. rms: NaN when no element is finite. std: of the population (divided by n, not n - 1).
    nan, infinite, zero: element counts (zero of either sign).
    first_non_finite: index in row-major order of the first NaN or infinity, None without one.
    table: how many elements are in each cell of float32's top 16 bits (exact for bfloat16, float8 and 8-bit integers;
    finite values beyond float32's range are in its outermost finite cell); histograms, quantiles and fingerprints come
    from it without another read. It merges by addition.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsReport:
    """Statistics of one state dict. skipped: (name, why) of tensors that could not be read as numbers."""

    state_dict: tuple[str, ...]
    tensors: tuple[TensorStatistics, ...]
    skipped: tuple[tuple[str, str], ...]
    seconds: float
