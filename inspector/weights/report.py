"""Statistics of tensor values: one object per tensor from one pass over its bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorStatistics:
    """What one read over a tensor tells. Moments are over the finite elements, in float64.

    minimum .. rms: NaN when no element is finite. nan, infinite, zero: element counts.
    first_non_finite: index in row-major order of the first NaN or infinity, None without one.
    table: the sparse histogram (code, count), code = the top 16 bits of the float32 value as an unsigned
    integer (exact for bfloat16 values); histograms, quantiles and fingerprints come from it without another read.
    It merges by addition.
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
    table: tuple[tuple[int, int], ...]


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
