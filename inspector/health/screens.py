"""What is known of every small tensor from one look at many of them side by side: what a check would find in it, or
that it would find nothing.

A network of twenty thousand small tensors is a few shapes. Each check by itself would call numpy some fifty times for
each tensor, and read it once more; here tensors of one shape are the rows of one array. A screen only ever says that a
check finds nothing, with room for rounding, or gives the check's own answer; a tensor without a screen is looked at by
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.checkpoint.stacks import Stack, read_stacks, stack_place
from inspector.errors import InspectorError
from inspector.health.freshness import Freshness
from inspector.health.freshness_of_many import Member, freshness_of_stack
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Subject
from inspector.health.thresholds import Thresholds

Path = tuple[str, ...]
Values = NDArray[np.float32]
Flags = NDArray[np.bool_]

_AT_ONCE = 2 << 20
_LAYERS = (*LAYERS, Role.EMBEDDING)
# The largest magnitude over the median, up to which no number is out of proportion to the next; the cells of a value
# table, by which the check measures, are known to 1/128.
CALM = 6.5
_CELL = 1 + 2.0**-7
# Smaller magnitudes are known to less.
_LEAST = 1e-30
#: Fewer equal numbers at an end are no pile.
PILE = 9
#: The smallest number of which float16 keeps all digits: smaller ones lose them one by one.
COARSE = 2.0**-14
# Rows of which every two are compared here.
_ROWS = 128
# The cosine of two rows in float32 is known to so much.
_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """calm: no magnitude is above 6.5 times the median one. piles: more than a few are exactly the smallest or largest.
    apart: no two rows are the same or nearly. alive: no row and no column is next to nothing beside the others. level:
    no number is far above their root mean square, and no row's largest far above the median row's. coarse:
    some are too small for float16 to keep all their digits. judged, freshness: what `freshness_of` answers, where it
    was asked."""

    calm: bool
    piles: bool
    apart: bool
    alive: bool
    level: bool
    coarse: bool
    judged: bool = False
    freshness: Freshness | None = None


def screens_of(subject: Subject) -> dict[Path, Screen]:
    """By path; made once for all checks of a subject."""
    known: dict[Path, Screen] | None = subject.memo.get("screens")
    if known is None:
        known = subject.memo["screens"] = dict(_screens(subject))
    return known


def _screens(subject: Subject) -> Iterator[tuple[Path, Screen]]:
    members: dict[Path, Member] = {}
    places = []
    for one, t in subject.measured():
        place = stack_place(subject.checkpoint, one.tensor) if t.finite == t.numel else None
        if place is not None:
            members[one.tensor.path] = one, t
            places.append((one.tensor, place))
    ends = [0]
    nbytes = 0
    for number, (tensor, _) in enumerate(places, 1):
        nbytes += tensor.nbytes
        if nbytes >= _AT_ONCE or number == len(places):
            ends.append(number)
            nbytes = 0
    for begin, end in pairwise(ends):
        try:
            stacks = read_stacks(subject.checkpoint, places[begin:end])
        except (InspectorError, OSError, ValueError, MemoryError):
            continue
        for stack in stacks:
            yield from _screen(stack, [members[tensor.path] for tensor in stack.tensors], subject.thresholds)


def _screen(stack: Stack, members: Sequence[Member], limits: Thresholds) -> Iterator[tuple[Path, Screen]]:
    first = stack.tensors[0]
    values = stack.raw if first.dtype == "float32" else to_float32(stack.raw, first.dtype)
    # What was measured says that all are finite; the file may have changed since.
    values = np.asarray(values, np.float32)
    sizes = np.abs(values)
    flags = (
        _calm(sizes),
        _piles(values),
        _apart(values, first.shape, limits),
        _alive(sizes, first.shape, limits),
        _level(sizes, first.shape, limits),
        _coarse(sizes, limits),
    )
    weights = [place for place, (one, _) in enumerate(members) if one.role in _LAYERS and len(first.shape) >= 2]
    judged: dict[int, Freshness | None] = {}
    if weights:
        answers = freshness_of_stack([members[place] for place in weights], values[weights], limits)
        judged = {weights[place]: answer for place, answer in answers}
    rows = zip(*(flag.tolist() for flag in flags), strict=True)
    for place, (tensor, (calm, piles, apart, alive, level, coarse)) in enumerate(zip(stack.tensors, rows, strict=True)):
        yield (
            tensor.path,
            Screen(
                calm=calm,
                piles=piles,
                apart=apart,
                alive=alive,
                level=level,
                coarse=coarse,
                judged=place in judged,
                freshness=judged.get(place),
            ),
        )


def _calm(sizes: Values) -> Flags:
    # One below the middle, so that nine numbers of sixteen are at least as large.
    middle = max(0, sizes.shape[1] // 2 - 1)
    ordered = np.partition(sizes, middle, axis=1)
    found: Flags = ordered[:, middle:].max(axis=1) * _CELL <= CALM * ordered[:, middle]
    return found & (ordered[:, middle] > _LEAST)


def _piles(values: Values) -> Flags:
    if values.shape[1] < PILE:
        return np.zeros(len(values), bool)
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    at_low, at_high = (np.count_nonzero(values == end, axis=1) >= PILE for end in (low, high))
    found: Flags = at_low | at_high
    return found


def _apart(values: Values, shape: tuple[int, ...], limits: Thresholds) -> Flags:
    if len(shape) < 2 or not 1 < shape[0] <= _ROWS:
        return np.zeros(len(values), bool)
    rows = values.reshape(len(values), shape[0], -1).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        short = rows.astype(np.float32)
        cosines = short @ short.transpose(0, 2, 1)
    every = np.arange(shape[0])
    cosines[:, every, every] = -1
    # A row of zeros has no angle: what is no number is below nothing.
    unlike = cosines < min(limits.duplicate_cosine, 1.0) - _ROUNDING
    return np.asarray(unlike.reshape(len(values), -1).all(axis=1), np.bool_)


def _alive(sizes: Values, shape: tuple[int, ...], limits: Thresholds) -> Flags:
    if len(shape) < 2:
        return np.ones(len(sizes), bool)
    table = sizes.reshape(len(sizes), shape[0], shape[1], -1)
    rows, columns = (np.sort(table.mean(axis=axes, dtype=np.float64), axis=1) for axes in ((2, 3), (1, 3)))
    ends = ((means[:, 0], _middle(means)) for means in (rows, columns))
    found: Flags = np.logical_and(
        *((least > limits.dead * usual * (1 + _ROUNDING)) & (least > _LEAST) for least, usual in ends)
    )
    return found


def _level(sizes: Values, shape: tuple[int, ...], limits: Thresholds) -> Flags:
    peaks = np.sort(sizes.reshape(len(sizes), shape[0] if shape else 1, -1).max(axis=2), axis=1).astype(np.float64)
    rms = np.sqrt(np.square(sizes, dtype=np.float64).mean(axis=1))
    largest = peaks[:, -1] * (1 + _ROUNDING)
    found: Flags = (largest <= limits.outlier_row * _middle(peaks)) & (largest <= limits.outlier_peak * rms)
    return found


def _coarse(sizes: Values, limits: Thresholds) -> Flags:
    small = np.count_nonzero((sizes < COARSE * _CELL) & (sizes > 0), axis=1)
    share = min(limits.cast_lost, limits.cast_coarse)
    found: Flags = small > share * np.count_nonzero(sizes, axis=1)
    return found


def _middle(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): the median of each row, which is ascending."""
    count = ordered.shape[1]
    found: NDArray[np.float64] = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
    return found
