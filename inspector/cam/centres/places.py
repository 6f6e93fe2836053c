"""Where the elements of a tensor look: an affine function of their indices, which reshaping regroups.

The first element looks at a point of the input; along each axis, a step moves that point by so many pixels down and
across. An axis that was folded from several (patches in a row, windows) is made of several factors, the outermost
first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from inspector.cam.report import Centres

# Pixels by which two ways to one tensor may differ: rounding of fractions such as 1/3.
_SAME = 1e-6
DOWN, ACROSS = 0, 1
Step = tuple[float, float]
STILL: Step = (0.0, 0.0)


class Unplaced(Exception):
    """Nothing can be said of where the result of an operation looks."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Part of an axis, or all of it.

    size: how many steps. step: pixels of the input, (down, across), that one moves; none for channels and pictures.
    tokens: of a piece that begins or ends with tokens of no place (a class token), what the others are made of;
    before: how many come first. Such a piece is not taken apart.
    """

    size: int
    step: Step = STILL
    tokens: tuple[Factor, ...] = ()
    before: int = 0

    @property
    def moves(self) -> bool:
        return self.step != STILL or bool(self.tokens)


Axis = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Places:
    """axes: of each axis its factors, () for one of a single step. start: where the first element looks, (down,
    across) in pixels; 0 in a direction in which nothing moves, which has no place."""

    axes: tuple[Axis, ...]
    start: Step = STILL

    @property
    def moves(self) -> bool:
        """Whether it has a place at all."""
        return any(factor.moves for axis in self.axes for factor in axis)

    def centres(self, layout: str, prefix_tokens: int, grid: tuple[int, int]) -> Centres | None:
        """Of the cells of a layer that puts this out; None where it is laid out otherwise."""
        channels = 1 if layout == "NCHW" else len(self.axes) - 1
        try:
            middle = averaged(self, [0, channels])
        except Unplaced:
            return None
        if layout == "NLC":
            axis = middle.axes[1]
            if prefix_tokens:
                piece = axis[0] if len(axis) == 1 else Factor(0)
                if piece.before != prefix_tokens or piece.size != prefix_tokens + math.prod(grid):
                    return None
                axis = piece.tokens
        else:
            first = 2 if layout == "NCHW" else 1
            axis = (*middle.axes[first], *middle.axes[first + 1])
        if [factor.size for factor in axis] != list(grid) or any(factor.tokens for factor in axis):
            return None
        (down, aslant), (slanted, across) = (factor.step for factor in axis)
        if aslant or slanted or down <= 0 or across <= 0:
            return None
        return Centres(first=middle.start, step=(down, across))


def of_picture(shape: Sequence[int]) -> Places:
    """(N, C, H, W): the first pixel's centre is half a pixel from the edges."""
    count, channels, height, width = shape
    return placed([plain(count), plain(channels), (Factor(height, (1, 0)),), (Factor(width, (0, 1)),)], (0.5, 0.5))


def nowhere(shape: Sequence[int]) -> Places:
    """A tensor of no place, as weights are."""
    return Places(tuple(plain(size) for size in shape))


def plain(size: int) -> Axis:
    """An axis that leads nowhere."""
    return () if size == 1 else (Factor(size),)


def placed(axes: Iterable[Axis], start: Step) -> Places:
    """With every axis in its shortest form, and no start in a direction that no axis moves in."""
    short = tuple(shortened(axis) for axis in axes)
    flat = [factor for axis in short for outer in axis for factor in (outer.tokens or (outer,))]
    down, across = (start[way] if any(factor.step[way] for factor in flat) else 0.0 for way in (DOWN, ACROSS))
    return Places(short, (down, across))


def shortened(axis: Iterable[Factor]) -> Axis:
    """Without factors of one step; neighbours that move as one are one."""
    found: list[Factor] = []
    for factor in axis:
        if factor.size == 1 and not factor.tokens:
            continue
        outer = found[-1] if found else None
        if outer and not outer.tokens and not factor.tokens and _same(outer.step, times(factor.step, factor.size)):
            found[-1] = Factor(outer.size * factor.size, factor.step)
        else:
            found.append(factor)
    return tuple(found)


def times(step: Step, number: float) -> Step:
    """That many steps."""
    return step[0] * number, step[1] * number


def moved(start: Step, step: Step, number: float = 1.0) -> Step:
    """That many steps on."""
    return start[0] + number * step[0], start[1] + number * step[1]


def single(axis: Axis, size: int) -> Factor:
    """An axis as one factor. Raises Unplaced where it has several, or tokens of no place."""
    if not axis and size == 1:
        return Factor(1)
    if len(axis) != 1 or axis[0].tokens:
        raise Unplaced
    return axis[0]


def still(axis: Axis) -> bool:
    """Whether it leads nowhere."""
    return not any(factor.moves for factor in axis)


def averaged(places: Places, which: Sequence[int]) -> Places:
    """These axes as one step each, in the middle of what they were: what a sum over them looks at."""
    axes, start = list(places.axes), places.start
    for number in which:
        for outer in axes[number]:
            for factor in outer.tokens or (outer,):
                start = moved(start, factor.step, (factor.size - 1) / 2)
        axes[number] = ()
    return placed(axes, start)


def without(places: Places, which: int) -> Places:
    """Less an axis of one step."""
    return Places(places.axes[:which] + places.axes[which + 1 :], places.start)


def agreed(several: Sequence[Places], sizes: Sequence[int]) -> Places:
    """Of what is computed element by element from tensors of these places, which are broadcast to these sizes.

    What has no place has no say. Raises Unplaced where the others disagree.
    """
    axes: list[Axis] = []
    for number, size in enumerate(sizes, start=-len(sizes)):
        own = [one.axes[number] for one in several if len(one.axes) >= -number]
        axes.append(_agreed_axis([axis for axis in own if not still(axis)], size))
    start = [0.0, 0.0]
    for way in (DOWN, ACROSS):
        own_starts = [one.start[way] for one in several if _moves(one, way)]
        if own_starts and max(own_starts) - min(own_starts) > _SAME:
            raise Unplaced
        start[way] = own_starts[0] if own_starts else 0.0
    return placed(axes, (start[0], start[1]))


def _agreed_axis(axes: Sequence[Axis], size: int) -> Axis:
    if not axes:
        return plain(size)
    if any(not _alike(axis, axes[0]) for axis in axes[1:]):
        raise Unplaced
    return axes[0]


def _alike(one: Axis, other: Axis) -> bool:
    return len(one) == len(other) and all(
        (a.size, a.before) == (b.size, b.before) and _same(a.step, b.step) and _alike(a.tokens, b.tokens)
        for a, b in zip(one, other, strict=True)
    )


def _same(one: Step, other: Step) -> bool:
    return abs(one[0] - other[0]) <= _SAME and abs(one[1] - other[1]) <= _SAME


def _moves(places: Places, way: int) -> bool:
    return any(factor.step[way] for axis in places.axes for outer in axis for factor in (outer.tokens or (outer,)))


def reshaped(places: Places, old: Sequence[int], new: Sequence[int]) -> Places:
    """The same elements in the same order under other sizes. Raises Unplaced where a factor would have to be torn."""
    if 0 in old or 0 in new:
        raise Unplaced
    axes: list[Axis] = []
    before: list[tuple[int, Axis]] = list(zip(old, places.axes, strict=True))
    after = list(new)
    while before or after:
        # The fewest axes from each that hold equally many elements.
        left: list[tuple[int, Axis]] = [before.pop(0)] if before else [(1, ())]
        right = [after.pop(0)] if after else [1]
        while math.prod(size for size, _ in left) != math.prod(right):
            if math.prod(size for size, _ in left) < math.prod(right):
                left.append(before.pop(0))
            else:
                right.append(after.pop(0))
        factors = [factor for _, axis in left for factor in axis]
        if not any(factor.moves for factor in factors):
            axes += [plain(size) for size in right]
        else:
            axes += _dealt(factors, right)
    return placed(axes[: len(new)], places.start)


def _dealt(factors: list[Factor], sizes: Sequence[int]) -> list[Axis]:
    """The factors, outermost first, as axes of these sizes."""
    rest = list(factors)
    axes: list[Axis] = []
    for size in sizes:
        axis: list[Factor] = []
        missing = size
        while missing > 1:
            if not rest:
                raise Unplaced
            factor = rest.pop(0)
            if missing % factor.size == 0:
                axis.append(factor)
                missing //= factor.size
            elif factor.size % missing == 0 and not factor.tokens:
                inner = factor.size // missing
                axis.append(Factor(missing, times(factor.step, inner)))
                rest.insert(0, Factor(inner, factor.step))
                missing = 1
            else:
                raise Unplaced
        axes.append(tuple(axis))
    return axes


def sliced(places: Places, which: int, size: int, start: int, stop: int, step: int = 1) -> Places:
    """Elements start, start + step, ... before stop along an axis of this size."""
    axis, count = places.axes[which], max(0, -(-(stop - start) // step))
    if count == size:
        return places
    axes, begin = list(places.axes), places.start
    if still(axis):
        axes[which] = plain(count)
    elif len(axis) == 1 and axis[0].tokens:
        axes[which] = _of_tokens(axis[0], start, stop, step)
    elif count == 1:
        # One element is somewhere also where the axis is folded from several.
        for factor in reversed(axis):
            start, index = divmod(start, factor.size)
            begin = moved(begin, factor.step, index)
        axes[which] = ()
    else:
        factor = single(axis, size)
        begin = moved(begin, factor.step, start)
        axes[which] = (Factor(count, times(factor.step, step)),)
    return placed(axes, begin)


def _of_tokens(piece: Factor, start: int, stop: int, step: int) -> Axis:
    """A slice that takes all of the tokens that have a place, or none."""
    count = math.prod(factor.size for factor in piece.tokens)
    behind = piece.before + count
    if stop <= piece.before or start >= behind:
        return plain(max(0, -(-(stop - start) // step)))
    if step != 1 or start > piece.before or stop < behind:
        raise Unplaced
    return with_tokens(piece.tokens, piece.before - start, stop - behind)


def with_tokens(axis: Axis, before: int, after: int) -> Axis:
    """An axis between so many tokens of no place."""
    if not before and not after:
        return axis
    if len(axis) == 1 and axis[0].tokens:
        piece = axis[0]
        return (replace(piece, size=before + piece.size + after, before=before + piece.before),)
    count = math.prod(factor.size for factor in axis)
    return (Factor(before + count + after, tokens=axis, before=before),)
