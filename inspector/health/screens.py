"""What is known of every small tensor from one look at many of them side by side: what a check would find in it, or
that it would find nothing.

A network of twenty thousand small tensors is a few shapes. Each check by itself would call numpy some fifty times for
each tensor, and read it once more; here tensors of one shape are the rows of one array. A screen only ever says that a
check finds nothing, with room for rounding, or gives the check's own answer; a tensor without a screen is looked at by
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.checkpoint.stacks import Stack, read_stacks, stack_places
from inspector.errors import InspectorError
from inspector.health.freshness import Freshness
from inspector.health.freshness_of_many import Member, freshness_of_stack
from inspector.health.roles import LAYERS, Role
from inspector.health.subject import Subject
from inspector.health.thresholds import Thresholds
from inspector.weights.report import PackedBytes

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Screens:
    """Flags of the tensors that `Subject.columns` has, in its order; all are down of one that has to be looked at by
    itself.

    calm: no magnitude is above 6.5 times the median one. even: no more than a few are exactly the smallest or largest.
    apart: no two rows are the same or nearly. alive: no row and no column is next to nothing beside the others. level:
    no number is far above their root mean square, and no row's largest far above the median row's. fine: few are too
    small for float16 to keep all their digits. judged: `freshness_of` was asked, and has answered `freshness`, by path.
    """

    calm: Flags
    even: Flags
    apart: Flags
    alive: Flags
    level: Flags
    fine: Flags
    judged: Flags
    freshness: Mapping[Path, Freshness | None]


_FLAGS = ("calm", "even", "apart", "alive", "level", "fine", "judged")


def screens_of(subject: Subject) -> Screens:
    """Worked out once for all checks, of whichever of the tensors have numbers for them (`Subject.without`)."""
    known: Screens | None = subject.own_memo.get("screens")
    if known is None:
        whole: tuple[dict[Path, int], Screens] | None = subject.memo.get("screens")
        known = _screens(subject) if whole is None else _of_some(subject, *whole)
        if whole is None:
            subject.memo["screens"] = {one.tensor.path: i for i, (one, _) in enumerate(subject.measured())}, known
        subject.own_memo["screens"] = known
    return known


def _of_some(subject: Subject, places: Mapping[Path, int], whole: Screens) -> Screens:
    """Of another set of weights nothing is known."""
    here = np.array([places.get(one.tensor.path, -1) for one, _ in subject.measured()], np.intp)
    flags = {name: np.append(getattr(whole, name), False)[here] for name in _FLAGS}
    return Screens(freshness=whole.freshness, **flags)


def _screens(subject: Subject) -> Screens:
    members = tuple(subject.measured())
    flags = {name: np.zeros(len(members), np.bool_) for name in _FLAGS}
    freshness: dict[Path, Freshness | None] = {}
    for stack, places in _stacks(subject, members):
        found, judged = _screen(stack, [members[place] for place in places], subject.thresholds)
        for name, flag in found.items():
            flags[name][places] = flag
        for place, answer in judged:
            flags["judged"][places[place]] = True
            freshness[stack.tensors[place].path] = answer
    return Screens(freshness=freshness, **flags)


def _stacks(subject: Subject, members: Sequence[Member]) -> Iterator[tuple[Stack, list[int]]]:
    """With the places of its tensors among the members."""
    whole = np.flatnonzero(subject.columns.whole).tolist()
    tensors = [members[place][0].tensor for place in whole]
    found = zip(whole, tensors, stack_places(subject.checkpoint, tensors), strict=True)
    fit = [(member, tensor, begin) for member, tensor, begin in found if begin is not None]
    ends = [0]
    nbytes = 0
    for number, (_, tensor, _) in enumerate(fit, 1):
        nbytes += tensor.nbytes
        if nbytes >= _AT_ONCE or number == len(fit):
            ends.append(number)
            nbytes = 0
    for begin, end in pairwise(ends):
        lot = fit[begin:end]
        try:
            stacks = read_stacks(subject.checkpoint, [(tensor, place) for _, tensor, place in lot])
        except (InspectorError, OSError, ValueError, MemoryError):
            continue
        for stack in stacks:
            yield stack, [lot[given][0] for given in stack.given]


def _screen(
    stack: Stack, members: Sequence[Member], limits: Thresholds
) -> tuple[dict[str, Flags], Iterable[tuple[int, Freshness | None]]]:
    first = stack.tensors[0]
    values = stack.raw if first.dtype == "float32" else to_float32(stack.raw, first.dtype)
    # What was measured says that all are finite; the file may have changed since.
    values = np.asarray(values, np.float32)
    sizes = np.abs(values)
    flags = {
        "calm": _calm(sizes),
        "even": _even(values),
        "apart": _apart(values, first.shape, limits),
        "alive": _alive(members, limits),
        "level": _level(sizes, members, limits),
        "fine": _fine(sizes, limits),
    }
    weights = [place for place, (one, _) in enumerate(members) if one.role in _LAYERS and len(first.shape) >= 2]
    if not weights:
        return flags, ()
    some = len(weights) < len(members)
    answers = freshness_of_stack(
        [members[place] for place in weights] if some else members, values[weights] if some else values, limits
    )
    return flags, [(weights[place], answer) for place, answer in answers]


def _calm(sizes: Values) -> Flags:
    # One below the middle, so that nine numbers of sixteen are at least as large.
    middle = max(0, sizes.shape[1] // 2 - 1)
    ordered = np.partition(sizes, middle, axis=1)
    found: Flags = ordered[:, middle:].max(axis=1) * _CELL <= CALM * ordered[:, middle]
    return found & (ordered[:, middle] > _LEAST)


def _even(values: Values) -> Flags:
    if values.shape[1] < PILE:
        return np.ones(len(values), bool)
    # Up to 4,096 numbers are counted exactly in float32, and much faster by a product than by summing flags.
    ones = np.ones(values.shape[1], np.float32)
    ends = (values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True))
    low, high = ((values == end).astype(np.float32) @ ones < PILE for end in ends)
    found: Flags = low & high
    return found


def _apart(values: Values, shape: tuple[int, ...], limits: Thresholds) -> Flags:
    if len(shape) < 2 or not 1 < shape[0] <= _ROWS:
        return np.zeros(len(values), bool)
    rows = values.reshape(len(values), shape[0], -1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        squares = np.einsum("tri,tri->tr", rows, rows)
        short = rows * (1 / np.sqrt(squares))[:, :, None]
        cosines = short @ short.transpose(0, 2, 1)
        every = np.arange(shape[0])
        cosines[:, every, every] = -1
        # A row of zeros has no angle: what is no number is below nothing.
        found: Flags = cosines.reshape(len(values), -1).max(axis=1) < min(limits.duplicate_cosine, 1.0) - _ROUNDING
    # Squares far outside float32's range are known to too little.
    known: Flags = (squares.min(axis=1) > _LEAST) & (squares.max(axis=1) < 1 / _LEAST)
    return np.logical_and(found, known)


def _alive(members: Sequence[Member], limits: Thresholds) -> Flags:
    """By the sums of rows and columns that were measured, of which there are none of vectors."""
    rows = [t.rows for _, t in members if t.rows is not None]
    if len(rows) < len(members):
        return np.ones(len(members), bool) if len(members[0][1].shape) < 2 else np.zeros(len(members), bool)
    found = np.ones(len(members), bool)
    for sums in ([each.total for each in rows], [each.across for each in rows]):
        ordered = np.sort(_floats(sums), axis=1).astype(np.float64)
        found &= (ordered[:, 0] > limits.dead * _middle(ordered) * (1 + _ROUNDING)) & (ordered[:, 0] > _LEAST)
    return found


def _level(sizes: Values, members: Sequence[Member], limits: Thresholds) -> Flags:
    rows = [t.rows for _, t in members if t.rows is not None]
    largest = _floats([each.largest for each in rows]) if len(rows) == len(members) else sizes
    peaks = np.sort(largest, axis=1).astype(np.float64)
    rms = np.array([t.rms for _, t in members])
    top = peaks[:, -1] * (1 + _ROUNDING)
    found: Flags = (top <= limits.outlier_row * _middle(peaks)) & (top <= limits.outlier_peak * rms)
    return found


def _floats(each: Sequence[PackedBytes]) -> Values:
    """(each, numbers) of as many float32 numbers."""
    return np.frombuffer(b"".join(each), np.float32).reshape(len(each), -1)


def _fine(sizes: Values, limits: Thresholds) -> Flags:
    found = np.ones(len(sizes), bool)
    low = np.flatnonzero(sizes.min(axis=1) < COARSE * _CELL)
    some = sizes[low]
    small = np.count_nonzero((some < COARSE * _CELL) & (some > 0), axis=1)
    share = min(limits.cast_lost, limits.cast_coarse)
    found[low] = small <= share * np.count_nonzero(some, axis=1)
    return found


def _middle(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): the median of each row, which is ascending."""
    count = ordered.shape[1]
    found: NDArray[np.float64] = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
    return found
