"""What the tests for relatives look at: a finished comparison, and the numbers of one pair at a time as matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.casts import cast, numbers_of
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, TensorInfo
from inspector.compare.dense import decode
from inspector.compare.report import Diff, PairNumbers, Relation, TensorDiff, Verdict
from inspector.errors import InspectorError
from inspector.weights.decoded.types import TensorBytes
from inspector.weights.moments import TILE

Matrix = NDArray[np.float64]

#: Elements of a tensor that is read again, whole; larger ones are not examined, and that is said.
MOST_NUMEL = 1 << 25
#: Elements that are read again in all, a tensor counted each time.
BUDGET = 1 << 30
#: Half a unit in the last place, as a share of the number.
UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_NARROWER = ("float64", "float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Two:
    """A pair of tensors as numbers. a, b: (rows, columns), axis 0 against all others in row-major order, finite.

    kernel: elements of b's column that go together, the product of the axes behind the second one.
    unit: how far rounding to b's type moves a number, as a share of it.
    """

    diff: TensorDiff
    a: Matrix
    b: Matrix
    kernel: int
    unit: float


@dataclass(frozen=True)
class Relatives:
    """diff: without these verdicts. of_a, of_b: the tensors compared, by name. left_out: what was not examined,
    by the first file's name, noted by whoever asks for it. is_turned: the second file stands as `a`. answers: what
    several tests ask for, once it was looked for."""

    diff: Diff
    a: Checkpoint
    b: Checkpoint
    of_a: dict[str, TensorInfo]
    of_b: dict[str, TensorInfo]
    left_out: dict[str, None] = field(default_factory=dict)
    is_turned: bool = False
    answers: dict[str, object] = field(default_factory=dict)
    _last: list[Two] = field(default_factory=list)
    _read_numel: list[int] = field(default_factory=lambda: [0])

    @cached_property
    def changed(self) -> tuple[TensorDiff, ...]:
        """Pairs of one shape with other numbers, and those moved to another type."""
        return tuple(
            t for t in self.diff.tensors if t.relation in (Relation.CHANGED, Relation.CAST, Relation.TRUNCATED)
        )

    @cached_property
    def weights(self) -> tuple[TensorDiff, ...]:
        """Of these the matrices and kernels of real numbers."""
        return tuple(t for t in self.changed if _is_weight(t))

    @cached_property
    def rest_is_same(self) -> bool:
        """Whether every tensor has its counterpart of its shape."""
        ok = (Relation.SAME, Relation.CHANGED, Relation.CAST, Relation.TRUNCATED)
        return all(t.relation in ok for t in self.diff.tensors)

    @cached_property
    def turned(self) -> Relatives:
        """The second file as the first. Of the numbers of a pair, those of zeros are not turned: they are 0."""
        tensors = tuple(
            replace(t, a=t.b, b=t.a, relation=_TURNED.get(t.relation, t.relation), numbers=_turned(t.numbers))
            for t in self.diff.tensors
        )
        return Relatives(
            diff=replace(self.diff, a=self.diff.b, b=self.diff.a, tensors=tensors),
            a=self.b,
            b=self.a,
            of_a=self.of_b,
            of_b=self.of_a,
            left_out=self.left_out,
            is_turned=True,
            _read_numel=self._read_numel,
        )

    def name_of(self, pair: TensorDiff) -> str:
        """By the first file's name, whichever way round."""
        return pair.b.name if self.is_turned and pair.b is not None else pair.name

    def two(self, pair: TensorDiff) -> Two | None:
        """Their numbers; None for what is too large, cannot be read, or holds NaN or infinity.

        Where b's type is the shorter one, a is cast to it first: what is left is then no rounding.
        """
        if self._last and self._last[0].diff is pair:
            return self._last[0]
        self._last.clear()
        found = self._read(pair)
        if found is None:
            self.left_out[self.name_of(pair)] = None
        else:
            self._last.append(found)
        return found

    def _read(self, pair: TensorDiff) -> Two | None:
        if pair.a is None or pair.b is None or pair.a.numel > MOST_NUMEL or pair.a.shape != pair.b.shape:
            return None
        if not pair.a.shape or not pair.a.numel or self._read_numel[0] + pair.a.numel > BUDGET:
            return None
        self._read_numel[0] += pair.a.numel
        try:
            (one, dtype_a), (two, dtype_b) = (
                read_numbers(self.a, self.of_a[pair.a.name]),
                read_numbers(self.b, self.of_b[pair.b.name]),
            )
        except (InspectorError, OSError, ValueError, MemoryError):
            return None
        if len(one) != len(two) or len(one) != pair.a.numel:
            return None
        if _is_narrower(dtype_b, dtype_a):
            one, dtype_a = cast(one, dtype_a, dtype_b), dtype_b
        shape = (pair.a.shape[0], -1)
        a = np.asarray(numbers_of(one, dtype_a), np.float64).reshape(shape)
        b = np.asarray(numbers_of(two, dtype_b), np.float64).reshape(shape)
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return None
        unit = max(UNITS.get(dtype, 2.0**-24) for dtype in (dtype_a, dtype_b))
        return Two(diff=pair, a=a, b=b, kernel=math.prod(pair.a.shape[2:]), unit=unit)

    def each(self, pairs: tuple[TensorDiff, ...]) -> Iterator[Two]:
        """Those that can be read, one at a time."""
        for pair in pairs:
            found = self.two(pair)
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """One kind of relationship. id, title, says: as a `VerdictEntry`'s. decide: None where it does not hold.

    likeness: it says only how alike the two are, which is not asked where something else explains the difference.
    """

    id: str
    title: str
    says: str
    decide: Callable[[Relatives], Verdict | None]
    likeness: bool = False


def read_numbers(checkpoint: Checkpoint, tensor: TensorInfo) -> tuple[NDArray[np.generic], str]:
    """(its elements in their raw type, flat; the type). Blocks, quantised and sparse tensors are decoded.

    Raises ReadError and CorruptFile as reading does.
    """
    decoded = decode(TensorBytes(checkpoint=checkpoint, tensor=tensor, at_once=TILE))
    pieces = [np.array(chunk).reshape(-1) for chunk in decoded.chunks]
    return (np.concatenate(pieces) if pieces else np.empty(0, np.float32)), decoded.dtype


_TURNED = {Relation.ADDED: Relation.REMOVED, Relation.REMOVED: Relation.ADDED}


def _turned(numbers: PairNumbers | None) -> PairNumbers | None:
    if numbers is None:
        return None
    return replace(
        numbers,
        nan_a=numbers.nan_b,
        nan_b=numbers.nan_a,
        infinite_a=numbers.infinite_b,
        infinite_b=numbers.infinite_a,
        sum_a=numbers.sum_b,
        sum_b=numbers.sum_a,
        square_a=numbers.square_b,
        square_b=numbers.square_a,
        zeroed=0,
        largest_zeroed=None,
        smallest_kept=None,
    )


def _is_weight(pair: TensorDiff) -> bool:
    if pair.a is None or pair.b is None or len(pair.a.shape) < 2 or pair.parts != 1:
        return False
    return all(is_real(side.dtype) for side in (pair.a, pair.b))


def is_real(name: str) -> bool:
    """Whether a tensor of this type holds real numbers, decoded or not."""
    dtype = find_dtype(name)
    # Blocks, whose type no table of torch's knows, are decoded.
    return dtype is None or (not name.startswith(("complex", "bcomplex")) and (dtype.floating or name.startswith("q")))


def _is_narrower(one: str, other: str) -> bool:
    return one in _NARROWER and other in _NARROWER and _NARROWER.index(one) > _NARROWER.index(other)
