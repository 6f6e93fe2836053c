"""Is one of several checkpoints a linear merge of the others?

The coefficients come from the products of all files with one another, added up in one pass over them; the residual of
the one that could be a merge is then measured itself, since what is left after rounding is too small for differences
of sums. A merge leaves nothing but the rounding of its type, and the same coefficients in every tensor; an average of
steps that are not among the files leaves a thousand times more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.casts import numbers_of
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.dense import decode
from inspector.compare.pair import blocks
from inspector.compare.relatives.subject import UNITS, Matrix
from inspector.compare.report import Verdict
from inspector.errors import InspectorError
from inspector.progress import Progress, silent
from inspector.units import counted
from inspector.weights.decoded.types import TensorBytes
from inspector.weights.moments import TILE

#: More files than this are not solved for at once.
MOST_FILES = 9
# Of the rounding of the merge's type (two products and a sum leave 0.4 to 0.65), for two parents and for each further.
_ROUNDINGS, _MORE = 1.0, 0.3
_SCATTER = 1.5
_CONDITION = 1e8
#: Id, title and when it is said, for the documentation.
MERGE = (
    "merge",
    "Linear merge",
    "Of three or more files one is a sum of the others with one coefficient each, up to "
    "rounding in every tensor. Which was computed from which is not told.",
)
BLEND = ("blend", "Blend by layer", "The same with other coefficients in each tensor.")
# How much nearer than the nearest single parent it has to be, and what a coefficient of none is.
_NEARER, _NOTHING = 10.0, 1e-4
_LEAST_NUMEL = 64
_FROM_SUMS = 1e-2


@dataclass(frozen=True, slots=True)
class _Tensor:
    """One name that all the files have. products: (files, files) of their numbers with one another.

    equal: pairs of files that have the very same numbers in it, the earlier first.
    """

    name: str
    held: tuple[TensorInfo, ...]
    products: Matrix
    equal: frozenset[tuple[int, int]]


def find_merge(files: Sequence[Checkpoint], *, progress: Progress = silent) -> Verdict | None:
    """Which of three or more files is a merge of others among them; None where none is.

    Compared are the tensors of real numbers that all have under one name and shape. progress counts bytes of the
    first pass. What cannot be read is left out; of a file of which less than nine tenths could be compared nothing is
    said. Files with the same numbers count as one.
    """
    if not 3 <= len(files) <= MOST_FILES:
        return None
    shared = list(_products(files, progress))
    if not shared:
        return None
    least = 0.9 * max(sum(t.numel for t in _tensors(file) if _is_real(t)) for file in files)
    if sum(t.held[0].numel for t in shared) < least:
        return None
    whole = np.asarray(np.sum([t.products for t in shared], axis=0), np.float64)
    # A file that is there twice would leave its coefficient open.
    twice = {later for _, later in frozenset.intersection(*(t.equal for t in shared))}
    single = [n for n in range(len(files)) if n not in twice]
    if len(single) < 3:
        return None
    for child in sorted(single, key=lambda n: _likelihood(whole, n, single)):
        parents = [n for n in single if n != child]
        verdict = _one_recipe(files, shared, whole, child, parents) or _by_layer(files, shared, whole, child, parents)
        if verdict is not None:
            return verdict
    return None


def _likelihood(whole: Matrix, child: int, single: list[int]) -> tuple[bool, float]:
    """The average of the others first. The same equation can be solved for any of the files, and nothing in the
    numbers tells which was computed; one with coefficients between 0 and 1 is what people write down."""
    coefficients = _solve(whole, child, [n for n in single if n != child])
    if coefficients is None:
        return True, math.inf
    largest = float(np.abs(coefficients).max())
    return bool(coefficients.min() < -_NOTHING or largest > 1 + _NOTHING), largest


def _one_recipe(
    files: Sequence[Checkpoint], shared: list[_Tensor], whole: Matrix, child: int, parents: list[int]
) -> Verdict | None:
    coefficients = _solve(whole, child, parents)
    if coefficients is None or _left(whole, child, parents, coefficients) > _FROM_SUMS:
        return None
    used = [(files[n].origin.name, c) for n, c in zip(parents, coefficients, strict=True) if abs(c) > _NOTHING]
    roundings = _roundings(files, shared, whole, child, parents, [coefficients] * len(shared))
    if roundings is None or len(used) < 2:
        return None
    terms = "".join(f" {'-' if c < 0 else '+'} {abs(c):.5f} x {name}" for name, c in used)
    recipe = terms.removeprefix(" + ").strip()
    return Verdict(
        id=MERGE[0],
        title=MERGE[1],
        says=f"{files[child].origin.name} = {recipe}, in {counted(len(shared), 'tensor')} up to rounding, as a linear "
        "merge leaves it. Which of them was computed from the others the numbers do not tell.",
        proved=True,
        test="least squares over all tensors; what is left, in roundings of its type",
        number=roundings,
        threshold=_limit(parents),
        refuted_by="a residual beyond rounding in any tensor",
        subjects=tuple(t.name for t in shared),
    )


def _by_layer(
    files: Sequence[Checkpoint], shared: list[_Tensor], whole: Matrix, child: int, parents: list[int]
) -> Verdict | None:
    each = [_solve(t.products, child, parents) for t in shared]
    if sum(c is not None for c in each) < 2:
        return None
    if any(
        c is not None and _left(t.products, child, parents, c) > _FROM_SUMS for t, c in zip(shared, each, strict=True)
    ):
        return None
    roundings = _roundings(files, shared, whole, child, parents, each)
    if roundings is None:
        return None
    names = " and ".join(files[n].origin.name for n in parents)
    return Verdict(
        id=BLEND[0],
        title=BLEND[1],
        says=f"{files[child].origin.name} is a blend of {names} with other weights in each of "
        f"{counted(len(shared), 'tensor')}, up to rounding.",
        proved=True,
        test="least squares for each tensor; what is left, in roundings of its type",
        number=roundings,
        threshold=_limit(parents),
        refuted_by="a residual beyond rounding in any tensor",
        subjects=tuple(t.name for t in shared),
    )


def _limit(parents: list[int]) -> float:
    return _ROUNDINGS + _MORE * (len(parents) - 2)


def _roundings(
    files: Sequence[Checkpoint],
    shared: list[_Tensor],
    whole: Matrix,
    child: int,
    parents: list[int],
    coefficients: Sequence[NDArray[np.float64] | None],
) -> float | None:
    """What is left over all tensors, in roundings of the merge's type; None where that is more than rounding."""
    found = [_residual(files, t, child, parents, c) for t, c in zip(shared, coefficients, strict=True)]
    left = [r for r in found if r is not None]
    size = sum(own for _, own, _ in left)
    if len(left) < len(found) or not size:
        return None
    limit = _limit(parents)
    # A short tensor's own roundings scatter.
    if any(rest > (_SCATTER * limit * unit) ** 2 * own for rest, own, unit in left):
        return None
    relative = math.sqrt(sum(rest for rest, _, _ in left) / size)
    nearest = min(_left(whole, child, [n], np.ones(1)) for n in parents)
    roundings = relative / max(unit for *_, unit in left)
    return roundings if roundings <= limit and relative * _NEARER <= nearest else None


def _solve(products: Matrix, child: int, parents: list[int]) -> NDArray[np.float64] | None:
    """Coefficients of the parents; None where they are too near to one another to be told apart."""
    among = products[np.ix_(parents, parents)]
    scale = np.sqrt(np.diag(among))
    if not (scale > 0).all():
        return None
    unit = among / np.outer(scale, scale)
    if np.linalg.cond(unit) > _CONDITION:
        return None
    return np.asarray(np.linalg.solve(unit, products[parents, child] / scale) / scale, np.float64)


def _left(products: Matrix, child: int, parents: list[int], coefficients: NDArray[np.float64]) -> float:
    """Relative residual by the products: good for telling 1e-2 from 1, not for rounding."""
    own = float(products[child, child])
    if not own:
        return 0.0
    among = products[np.ix_(parents, parents)]
    rest = own - 2 * coefficients @ products[parents, child] + coefficients @ among @ coefficients
    return math.sqrt(max(float(rest), 0.0) / own)


def _residual(
    files: Sequence[Checkpoint],
    tensor: _Tensor,
    child: int,
    parents: list[int],
    coefficients: NDArray[np.float64] | None,
) -> tuple[float, float, float] | None:
    """(square of what is left, square of the merge, rounding of its type) of one tensor."""
    unit = UNITS.get(tensor.held[child].dtype)
    if unit is None:
        return None
    left = own = 0.0
    for tile in _tiles(files, tensor.held):
        # Parents that agree in this tensor: it has to be theirs.
        made = tile[parents[0]] if coefficients is None else coefficients @ tile[parents]
        rest = tile[child] - made
        left += float(rest @ rest)
        own += float(tile[child] @ tile[child])
    return left, own, unit


def _products(files: Sequence[Checkpoint], progress: Progress) -> Iterator[_Tensor]:
    named = [{t.name: t for t in _tensors(file) if _is_real(t)} for file in files]
    common = [
        t
        for t in named[0].values()
        if t.numel >= _LEAST_NUMEL and all(_fits(t, other.get(t.name)) for other in named[1:])
    ]
    total = sum(other[t.name].nbytes for t in common for other in named)
    done = 0
    for first in common:
        held = tuple(other[first.name] for other in named)
        progress(done, total, first.name)
        products = np.zeros((len(files), len(files)))
        equal = set(combinations(range(len(files)), 2))
        try:
            for tile in _tiles(files, held):
                products += tile @ tile.T
                equal = {(n, m) for n, m in equal if np.array_equal(tile[n], tile[m])}
        except (InspectorError, OSError, ValueError, MemoryError):
            continue
        done += sum(t.nbytes for t in held)
        if np.isfinite(products).all():
            yield _Tensor(first.name, held, products, frozenset(equal))
    progress(total, total, "")


def _fits(one: TensorInfo, other: TensorInfo | None) -> bool:
    return other is not None and other.shape == one.shape


def _tensors(checkpoint: Checkpoint) -> tuple[TensorInfo, ...]:
    state = checkpoint.weights
    return state.tensors if state else checkpoint.tensors


def _is_real(tensor: TensorInfo) -> bool:
    dtype = find_dtype(tensor.dtype)
    return dtype is not None and dtype.floating and not tensor.dtype.startswith(("complex", "bcomplex"))


def _tiles(files: Sequence[Checkpoint], held: Sequence[TensorInfo]) -> Iterator[Matrix]:
    """(files, elements) a tile at a time, float64."""
    decoded = [
        decode(TensorBytes(checkpoint=file, tensor=t, at_once=TILE)) for file, t in zip(files, held, strict=True)
    ]
    for together in zip(*(blocks(one) for one in decoded), strict=True):
        yield np.stack([np.asarray(numbers_of(x, d.dtype), np.float64) for x, d in zip(together, decoded, strict=True)])
