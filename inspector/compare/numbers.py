"""What two tensors of equally many numbers have to do with each other, as sums that can be added up further.

Every sum is in float64 over the elements that are finite on both sides, on the fixed grid of
`inspector/weights/moments.py`, so that it is the same to the last bit however the bytes came. Norms are within 1e-12
of math.fsum's, the sums within 1e-12 of the sum of magnitudes, the dot product within 1e-12 of |a| |b|.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from inspector.units import place_in

#: Below this share of the squares, what is left of them around the mean is rounding.
_LOST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One element that differs. index: its place in row-major order. size: |b - a|."""

    index: int
    a: float
    b: float
    size: float

    def place(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The index along each dimension of a shape."""
        return place_in(self.index, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNumbers:
    """Of the elements a[i] and b[i] of two tensors.

    n: pairs. finite: those with two finite numbers, over which the sums go.
    equal: pairs with the same value: NaN beside NaN counts, and 0 beside -0; zeroed ones never do.
    nan_a, nan_b, infinite_a, infinite_b: elements. nan_both: pairs of two NaN. odd_equal: pairs of two NaN, or of the
    same infinity.
    sum_a, sum_b, square_a, square_b, dot: of a, b, a^2, b^2, a b. square_delta: of (b - a)^2. Complex numbers are two
    numbers each.
    largest: the largest |b - a| of the finite pairs and the first place that has it; None where none differ.
    zeroed: pairs with b = 0 and a not. largest_zeroed: the largest |a| of them. smallest_kept: the smallest |a| of the
    finite pairs where neither is 0. None without any such pair.
    sign_flips: finite pairs with a positive and a negative number.
    """

    n: int = 0
    finite: int = 0
    equal: int = 0
    nan_a: int = 0
    nan_b: int = 0
    infinite_a: int = 0
    infinite_b: int = 0
    nan_both: int = 0
    odd_equal: int = 0
    sum_a: float = 0.0
    sum_b: float = 0.0
    square_a: float = 0.0
    square_b: float = 0.0
    square_delta: float = 0.0
    dot: float = 0.0
    largest: Change | None = None
    zeroed: int = 0
    largest_zeroed: float | None = None
    smallest_kept: float | None = None
    sign_flips: int = 0

    @property
    def one_sided(self) -> bool:
        """Whether NaN or an infinity of one stands beside something else in the other: sums leave such pairs out, and
        are no measure of likeness then."""
        return self.odd_equal != self.n - self.finite

    @property
    def norm_a(self) -> float:
        """|a| in L2."""
        return math.sqrt(self.square_a)

    @property
    def norm_b(self) -> float:
        """|b| in L2."""
        return math.sqrt(self.square_b)

    @property
    def norm_delta(self) -> float:
        """|b - a| in L2."""
        return math.sqrt(self.square_delta)

    @property
    def relative(self) -> float:
        """|b - a| / |a|; infinite where a is all zeros and b is not, NaN where squares leave float64."""
        if not self.square_a:
            return math.inf if self.square_delta else 0.0
        # Of the quotient, so that what is too small to be squared twice is not lost.
        return math.sqrt(self.square_delta) / math.sqrt(self.square_a)

    @property
    def cosine(self) -> float | None:
        """Of the angle between a and b; None where one is all zeros or the squares leave float64."""
        size = self.norm_a * self.norm_b
        return _bounded(self.dot / size) if size and math.isfinite(size) else None

    @property
    def centred_cosine(self) -> float | None:
        """The same with each one's mean taken off; None where nothing but rounding is left of one of them."""
        if self.finite < 2 or not math.isfinite(self.sum_a + self.sum_b + self.square_a + self.square_b):
            return None
        spread_a = self.square_a - self.sum_a * self.sum_a / self.finite
        spread_b = self.square_b - self.sum_b * self.sum_b / self.finite
        if spread_a <= _LOST * self.square_a or spread_b <= _LOST * self.square_b:
            return None
        return _bounded((self.dot - self.sum_a * self.sum_b / self.finite) / math.sqrt(spread_a) / math.sqrt(spread_b))

    @property
    def changed(self) -> int:
        """Pairs with two values."""
        return self.n - self.equal

    @property
    def rest_equal(self) -> bool:
        """Whether everything that was not set to zero is as it was."""
        return self.equal == self.n - self.zeroed

    @property
    def became_non_finite(self) -> int:
        """How many more NaN and infinities b has than a; negative for fewer."""
        return self.nan_b + self.infinite_b - self.nan_a - self.infinite_a


def add_up(parts: Iterable[PairNumbers]) -> PairNumbers:
    """Of all of them together, in any order. The place of the largest change is only of its own tensor: None."""
    held = tuple(parts)
    return PairNumbers(
        n=sum(p.n for p in held),
        finite=sum(p.finite for p in held),
        equal=sum(p.equal for p in held),
        nan_a=sum(p.nan_a for p in held),
        nan_b=sum(p.nan_b for p in held),
        infinite_a=sum(p.infinite_a for p in held),
        infinite_b=sum(p.infinite_b for p in held),
        nan_both=sum(p.nan_both for p in held),
        odd_equal=sum(p.odd_equal for p in held),
        sum_a=total([p.sum_a for p in held]),
        sum_b=total([p.sum_b for p in held]),
        square_a=total([p.square_a for p in held]),
        square_b=total([p.square_b for p in held]),
        square_delta=total([p.square_delta for p in held]),
        dot=total([p.dot for p in held]),
        zeroed=sum(p.zeroed for p in held),
        largest_zeroed=max((p.largest_zeroed for p in held if p.largest_zeroed is not None), default=None),
        smallest_kept=min((p.smallest_kept for p in held if p.smallest_kept is not None), default=None),
        sign_flips=sum(p.sign_flips for p in held),
    )


def total(numbers: Iterable[float]) -> float:
    """math.fsum, infinite or NaN where it would raise."""
    held = list(numbers)
    try:
        return math.fsum(held)
    except (OverflowError, ValueError):
        return sum(held)


def _bounded(cosine: float) -> float:
    """Rounding may carry it over the end."""
    return max(-1.0, min(1.0, cosine))
