"""Numbers out of all proportion to the rest of their tensor: one flipped bit, a damaged sector of a disk.

A flip of one of float32's exponent bits multiplies a number by 2 to 2^128 (IEEE 754). Trained matrices end smoothly:
the largest number of a healthy one was at most 3.2 times the next in hundreds of files. The single weights that
language models hang on (Yu et al. 2024, 2411.07191) are a few times larger than the next.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.screens import CALM, screens_of
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_place
from inspector.weights.report import TensorStatistics
from inspector.weights.table import finite_cells

LONE_VALUES = FindingKind(
    "values-out-of-proportion",
    Severity.WARNING,
    "A few numbers are out of all proportion to their tensor",
    also=(Severity.ERROR,),
    explains=(
        *("large-weight", "outlier-channels", "unlike-role", "unlike-siblings", "half-precision-overflow"),
        *("shifted-weights", "norm-scale-near-zero"),
    ),
)

_MATRICES = (*LAYERS, Role.EMBEDDING, Role.LORA_A, Role.LORA_B, Role.POSITION)
_VECTORS = (Role.BIAS, Role.NORM_SCALE, Role.NORM_SHIFT)
# The smallest of them over the largest of the rest, in a matrix and in a vector; so many at most, of so many numbers.
_MATRIX, _VECTOR = 8.0, 1e3
# The same of a single number that one flipped bit may have made of a usual one (below so many times the median), where
# the rest ends at so many times the median, in a matrix of fewer numbers than those in which language models have their
# single large weights.
_ONE, _USUAL, _TIGHT, _SMALL = CALM, 4.0, 16.0, 1 << 22
_MOST, _LEAST_NUMEL, _LEAST_VECTOR = 8, 256, 16
# The rest is in order where its largest magnitude is below so many times the usual one: 8 of normal numbers.
_IN_ORDER = 64.0
# Many of them, where they lie in one stretch: above so many times the usual magnitude, at most this part of all, in at
# most so many bytes.
_WILD, _SHARE, _SECTOR = 1e3, 0.02, 1 << 16
_RANDOM = 0.8
# trunc_normal_ of torch before 2.9 makes exactly -2 of the lowest of its 16 million random numbers.
_CUT = 2.0
# The square of a larger number is infinite in float32, and with it every norm, variance and loss it goes into.
_SQUARE = 1.8446744e19


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lone:
    """count: numbers. largest: with its sign. rest: the largest magnitude of the others. places: flat, the first ones.
    before: what one flipped bit made the largest of, None for no such bit. nbytes: of a stretch they lie in, or 0."""

    one: Examined
    count: int
    largest: float
    rest: float
    places: tuple[int, ...]
    before: float | None
    nbytes: int = 0

    @property
    def severity(self) -> Severity:
        return Severity.ERROR if abs(self.largest) > _SQUARE else Severity.WARNING


def _find(subject: Subject) -> Iterator[Finding]:
    groups: dict[Severity, list[_Lone]] = defaultdict(list)
    # Where no magnitude is above 6.5 times the median, none is above so many times the next either.
    asked = subject.among(*_MATRICES, *_VECTORS) & ~screens_of(subject).calm & subject.columns.varied
    for one, t in subject.those(asked):
        found = _lone(subject, one, t)
        if found is not None:
            groups[found.severity].append(found)
    for severity, found_of in groups.items():
        yield _finding(severity, sorted(found_of, key=lambda each: -abs(each.largest)))


def _lone(subject: Subject, one: Examined, t: TensorStatistics) -> _Lone | None:
    vector = one.role in _VECTORS or len(t.shape) < 2
    if t.finite < t.numel or t.numel < (_LEAST_VECTOR if vector else _LEAST_NUMEL) or t.minimum == t.maximum:
        return None
    largest = t.maximum if t.maximum >= -t.minimum else t.minimum
    if abs(abs(largest) - _CUT) < 1e-6:
        return None
    low, high, counts = finite_cells(t.table, exact=False)
    sizes = np.maximum(np.abs(low), np.abs(high))
    order = np.argsort(-sizes)
    sizes, counts = sizes[order], counts[order]
    # From the largest on: how many numbers there are to the end of each cell.
    within = np.cumsum(counts)
    few = int(np.searchsorted(within, _MOST, side="right"))
    gaps = sizes[:few] / np.maximum(sizes[1 : few + 1], 1e-300) if few < len(sizes) else np.zeros(0)
    # The cells next to a gap are known to 1/128.
    wide = np.flatnonzero(gaps > (_VECTOR if vector else _MATRIX))
    usual = float(sizes[int(np.searchsorted(within, t.numel / 2))])
    single = not vector and len(gaps) > 0 and gaps[0] > _ONE and within[0] == 1 and t.numel < _SMALL
    if not len(wide) and single and sizes[1] <= _TIGHT * usual:
        before = _flipped(t, largest, float(sizes[1]), usual)
        if before is not None and abs(before) <= _USUAL * usual:
            wide = np.zeros(1, np.intp)
    if len(wide) and 0 < sizes[wide[0] + 1] <= _IN_ORDER * usual:
        place = int(wide[0])
        count, rest = int(within[place]), float(sizes[place + 1])
        places = _places(subject, one, rest)
        return _Lone(
            one=one, count=count, largest=largest, rest=rest, places=places, before=_flipped(t, largest, rest, usual)
        )
    return None if vector else _sector(subject, one, t, sizes, within)


def _places(subject: Subject, one: Examined, rest: float) -> tuple[int, ...]:
    array = subject.array(one)
    return () if array is None else tuple(np.flatnonzero(np.abs(array.ravel()) > rest).tolist()[:_MOST])


def _flipped(t: TensorStatistics, value: float, rest: float, usual: float) -> float | None:
    """What the number may have been before a bit of its exponent was flipped: the most usual of those."""
    half = t.dtype == "float16"
    if t.dtype not in ("float32", "bfloat16", "float16"):
        return None
    code = int(np.array([value], np.float16 if half else np.float32).view(np.uint16 if half else np.uint32)[0])
    codes = [code ^ 1 << bit for bit in (range(10, 15) if half else range(23, 31))]
    others = np.array(codes, np.uint16 if half else np.uint32).view(np.float16 if half else np.float32).tolist()
    likely = [other for other in others if rest / 1e3 < abs(other) <= rest]
    return min(likely, key=lambda other: abs(math.log(abs(other) / usual)), default=None)


def _sector(
    subject: Subject,
    one: Examined,
    t: TensorStatistics,
    sizes: NDArray[np.float64],
    within: NDArray[np.int64],
) -> _Lone | None:
    """Many of them that lie in one stretch, as in a sector of random bytes."""
    usual = float(sizes[int(np.searchsorted(within, t.numel / 2))])
    wild = int(within[np.flatnonzero(sizes > _WILD * usual)[-1]]) if usual and sizes[0] > _WILD * usual else 0
    if not _MOST < wild <= _SHARE * t.numel:
        return None
    array = subject.array(one)
    if array is None:
        return None
    flat = np.abs(array.ravel())
    places = np.flatnonzero(flat > _WILD * usual)
    if len(places) < 2:
        return None
    nbytes = (int(places[-1]) - int(places[0]) + 1) * DTYPES[t.dtype].itemsize
    if nbytes > _SECTOR or nbytes * 4 > t.numel * DTYPES[t.dtype].itemsize:
        return None
    # Rows that are large throughout are rows; of random bytes half make large numbers.
    if len(places) > _RANDOM * (int(places[-1]) - int(places[0]) + 1):
        return None
    rest = float(np.delete(flat, np.arange(places[0], places[-1] + 1)).max())
    if rest > _IN_ORDER * usual:
        return None
    return _Lone(
        one=one,
        count=len(places),
        largest=float(array.ravel()[int(np.argmax(flat))]),
        rest=rest,
        places=(int(places[0]), int(places[-1])),
        before=None,
        nbytes=nbytes,
    )


def _finding(severity: Severity, found: Sequence[_Lone]) -> Finding:
    worst, names = found[0], [each.one.name for each in found]
    times = abs(worst.largest) / worst.rest
    return LONE_VALUES.found(
        f"{_who(worst)} out of all proportion: {worst.largest:.4g}, {times:.3g} times the largest of the rest "
        f"({worst.rest:.3g}){_what(worst)}{also(names)}.",
        severity=severity,
        subjects=names,
        evidence=(
            *(("numbers", sum(each.count for each in found)), ("largest", worst.largest), ("rest", worst.rest)),
            *((("before", worst.before),) if worst.before is not None else ()),
            *(("tensors", len(found)), ("threshold", _MATRIX)),
        ),
        remedy="The rest of the tensor is in order, and no training moves so few numbers so far: bits flip in memory, "
        "on disks and on the way. Compare the file's checksum, and take the tensor from another copy."
        + (" Its square is infinite in float32." if severity is Severity.ERROR else ""),
    )


def _who(worst: _Lone) -> str:
    name = shown(worst.one.name)
    if worst.nbytes:
        return f"{counted(worst.count, 'number')} of {name}, all between {_index(worst, 0)} and {_index(worst, 1)}, are"
    where = f" at {_index(worst, 0)}" if worst.places and worst.count == 1 else ""
    return f"{counted(worst.count, 'number')} of {name}{where} {'is' if worst.count == 1 else 'are'}"


def _what(worst: _Lone) -> str:
    if worst.nbytes:
        return ", as in a sector that holds other bytes"
    return f"; one flipped bit would make it of {worst.before:.4g}" if worst.before is not None else ""


def _index(worst: _Lone, nth: int) -> str:
    return human_place(worst.places[nth], worst.one.tensor.shape)


CHECK = Check(kinds=(LONE_VALUES,), find=_find)
