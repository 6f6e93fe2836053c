"""A quantised copy: every number of one file lies on a grid of few steps, and none is further from the other's than
half a step. Asked both ways round.

The grid is looked for per tensor, per row, and per group of neighbours in a row, which is what int8 and int4 exports
and ggml's blocks have. Counting different values would not do: a short row of 8-bit levels has hardly two alike. A grid
with larger differences (GPTQ moves the rest of a row to make up for each rounding) is a likeness only.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from inspector.compare.relatives.subject import Matrix, Relative, Relatives, Two
from inspector.compare.report import Verdict
from inspector.units import counted

_GROUPS = (0, -1, 16, 32, 64, 128)  # 0: the whole tensor, -1: a row
# Of half a step, for steps that were themselves rounded; and of a step, within which a number lies on the grid.
_SLACK, _ON_GRID = 1.02, 1e-2
# Where the rounding of b's own type hides the grid, an element tells nothing.
_TELLING = 0.2
_LEAST_TELLING, _LEAST_SHARE = 64, 0.5
_MOST_LEVELS = 512
# Levels on one side of zero, and between the lowest and the highest.
_PEAKS, _SPANS = (127, 128, 7, 8, 3, 1, 31, 32), (255, 15, 3, 7, 63)
_BOUND_SHARE, _COSINE = 0.98, 0.9


def _decide(subject: Relatives) -> Verdict | None:
    if not subject.rest_is_same or not subject.weights:
        return None
    return _one_way(subject) or _one_way(subject.turned)


def _one_way(subject: Relatives) -> Verdict | None:
    """Whether `b` is the one on a grid."""
    found: Counter[tuple[int, int]] = Counter()
    furthest, off, names = 0.0, 0, []
    for two in subject.each(subject.weights):
        grid = _grid_of(two)
        if grid is None:
            # Norms' and heads' matrices often stay as they were; what changed and is on no grid refutes it.
            if two.diff.numbers is not None and two.diff.numbers.relative > two.unit * 2:
                return None
            continue
        group, levels, ratio, within = grid
        found[(group, levels)] += 1
        furthest = max(furthest, ratio)
        off += not within
        names.append(subject.name_of(two.diff))
    if not names:
        return None
    (group, levels), _ = found.most_common(1)[0]
    per = {0: "one step a tensor", -1: "one step a row"}.get(group, f"one step for {group} neighbours")
    bits = max(int(np.ceil(np.log2(max(levels, 2)))), 1)
    which, lie = "first" if subject.is_turned else "second", "lies" if len(names) == 1 else "lie"
    proved = off == 0 and not subject.left_out
    end = (
        f"but {off:,} of them have differences beyond half a step, as rounding that makes up for itself leaves"
        if off
        else f"and no difference exceeds half a step (the largest is {furthest:.3f} of it)"
    )
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"A quantised copy: {counted(len(names), 'tensor')} of the {which} {lie} on a grid of up to {levels:,} "
        f"levels (about {bits} bits, {per}), {end}.",
        proved=proved,
        test=f"numbers of the {which} over their step are whole, and differ by at most half a step",
        number=furthest,
        threshold=_SLACK,
        refuted_by="an element between two steps, or one that is more than half a step away",
        subjects=tuple(names),
    )


def _grid_of(two: Two) -> tuple[int, int, float, bool] | None:
    """(group, levels, largest difference in half steps, whether nearly all are within one); None without a grid."""
    a, b = two.a, two.b
    if b.size < _LEAST_TELLING or np.array_equal(a, b):
        return None
    for group in _GROUPS:
        cut = _cut(a, b, group)
        if cut is None:
            continue
        for affine in (False, True):
            answer = _try(*cut, two.unit, affine)
            if answer is not None:
                return (group, *answer)
    return None


def _cut(a: Matrix, b: Matrix, group: int) -> tuple[Matrix, Matrix] | None:
    if group == 0:
        return a.reshape(1, -1), b.reshape(1, -1)
    if group == -1:
        return a, b
    if a.shape[1] % group or a.shape[1] == group:
        return None
    return a.reshape(-1, group), b.reshape(-1, group)


def _try(a: Matrix, b: Matrix, unit: float, affine: bool) -> tuple[int, float, bool] | None:
    low = b.min(axis=1, keepdims=True) if affine else np.zeros((len(b), 1))
    moved = b - low
    rounding = 2 * unit * np.abs(b)
    step = _step(moved, rounding, affine)
    if step is None:
        return None
    level = np.rint(moved / step)
    levels = int(level.max() - level.min()) + 1
    telling = int((rounding < _TELLING * step).sum())
    if not 3 <= levels <= _MOST_LEVELS or telling < max(_LEAST_TELLING, _LEAST_SHARE * b.size):
        return None
    ratio = (np.abs(b - a) - rounding) / (step / 2)
    within = float((ratio <= _SLACK).mean())
    # Numbers on a grid anywhere near: without likeness to the first it is no copy of it.
    spread = np.linalg.norm(a) * np.linalg.norm(b)
    if within < _BOUND_SHARE and (not spread or float((a * b).sum()) / spread < _COSINE):
        return None
    return levels, float(ratio.max()), within == 1.0


def _step(moved: Matrix, rounding: Matrix, affine: bool) -> Matrix | None:
    """The largest step of each row that all of its numbers are multiples of; None where a row has none.

    Tried are the steps that exporters take (the largest magnitude, or the whole span, over the levels there are), and
    the smallest gap between two of its values, or a half, a third or a quarter of it: a short row does not have two
    neighbouring levels.
    """
    largest = np.abs(moved).max(axis=1, keepdims=True)
    span = moved.max(axis=1, keepdims=True) - moved.min(axis=1, keepdims=True) if affine else largest
    gap = _gap(moved, rounding, largest)
    if gap is None:
        return None
    tried = [gap / n for n in (1, 2, 3, 4)] + [span / n for n in (_SPANS if affine else _PEAKS)]
    best = np.zeros_like(largest)
    for one in tried:
        # Nothing but zeros: on every grid.
        step = _sharpened(moved, np.where(one > 0, one, 1.0))
        at = moved / step
        on = (np.abs(at - np.rint(at)) * step <= _ON_GRID * step + rounding).all(axis=1, keepdims=True)
        best = np.where(on & (step > best), step, best)
    return best if (best > 0).all() else None


def _gap(moved: Matrix, rounding: Matrix, largest: Matrix) -> Matrix | None:
    """The smallest difference between two values of a row that is no rounding."""
    gaps = np.diff(np.sort(moved, axis=1), axis=1)
    if gaps.shape[1] == 0:
        return None
    noise = 4 * rounding.max(axis=1, keepdims=True) + 1e-12 * largest
    gap = np.where(gaps > noise, gaps, np.inf).min(axis=1, keepdims=True)
    # A row of one value lies on its own.
    return np.where(np.isfinite(gap), gap, largest)


def _sharpened(moved: Matrix, step: Matrix) -> Matrix:
    """The step by all of a row's values: a gap is the difference of two rounded numbers."""
    for _ in range(3):
        level = np.rint(moved / step)
        squares = (level * level).sum(axis=1, keepdims=True)
        step = np.where(squares > 0, (level * moved).sum(axis=1, keepdims=True) / np.maximum(squares, 1), step)
    return step


RELATIVE = Relative(
    id="quantised",
    title="Quantised copy",
    says="One file's matrices lie on a grid of few steps, and none of its numbers is more than half a step away from "
    "the other's; it is said which. Proved by the bound; differences beyond it make it a likeness.",
    decide=_decide,
)
