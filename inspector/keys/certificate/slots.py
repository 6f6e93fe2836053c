"""One tensor of a chain at a time: exchanged for the others of its kind, and its channels brought into another order.

What the chain says with the tensor in its place is held against what it says then. The orders are drawn (seeded); how
far the agreement in place lies above theirs is counted in their own standard deviations, so nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.keys.certificate.ranks import carriers, fisher, ranked

Floats = NDArray[np.float64]

ORDERS = 64
#: Standard deviations above other orders: a normal tail of 3e-7, below one in a thousand for all tests of a network.
FAR = 5.0
#: And above the best of the other tensors: whoever stands in another's place has that one above him.
ABOVE = 3.0
#: And a norm's two vectors together above any others, or themselves exchanged (one raises means as the other does).
BESIDE = 3.0
#: With six channels that carry the agreement, of 16 or more, one order in six million leaves all of them in place.
CARRIERS = 6.0
FEWEST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """own: how far the agreement lies above other orders, in their deviations; 0.0 where order changes nothing.

    best: the same for the best of the other tensors, and other: which it is, None without any. few: too few channels
    carry it to tell orders apart.
    """

    own: float
    best: float
    other: int | None
    few: bool

    @property
    def proves(self) -> bool:
        """Right by far, and nothing else as right."""
        return not self.few and self.own >= FAR and self.own - self.best >= ABOVE

    @property
    def contradicts(self) -> bool:
        """Something else is right by far, and far better."""
        return not self.few and self.other is not None and self.best >= FAR and self.best - self.own >= FAR


def orders_of(channels: int, seed: int) -> NDArray[np.intp]:
    """(ORDERS, channels): the same for the same chain, always."""
    rng = np.random.default_rng((seed, channels))
    return np.array([rng.permutation(channels) for _ in range(ORDERS)])


def try_slot(
    own: Floats,
    rivals: Sequence[Floats],
    predict: Callable[[Floats], Floats],
    remembered: Floats,
    share: Floats,
    *,
    seed: int,
) -> Tried:
    """own: the vector in place, (in,); rivals: others of its size. predict: (in, columns) to what the next norm should
    remember, (out, columns). remembered: what it does, (out,). share: what each channel gives to it.
    """
    orders = own[orders_of(len(own), seed)]
    # What is predicted without any order: it says nothing of this tensor, and would drown what it says.
    level = np.full_like(own, own.mean())
    columns = np.stack([level, own, *orders, *rivals], axis=1)
    made = predict(columns)
    plain = made[:, 0]
    goal = ranked(_without(remembered[:, None], plain))[:, 0]
    z = fisher(goal @ ranked(_without(made[:, 1:], plain)), len(goal))
    drawn = z[1 : ORDERS + 1]
    middle, deviation = float(drawn.mean()), float(drawn.std())
    if deviation < 1e-6:
        return Tried(own=0.0, best=0.0, other=None, few=False)
    scaled = (z - middle) / deviation
    others = scaled[ORDERS + 1 :]
    other = int(others.argmax()) if len(others) else None
    return Tried(
        own=float(scaled[0]),
        best=float(others[other]) if other is not None else 0.0,
        other=other,
        few=len(own) < FEWEST or len(goal) < FEWEST or carriers(share) < CARRIERS,
    )


def _without(columns: Floats, plain: Floats) -> Floats:
    """What of each column neither a constant nor `plain` tells, by least squares."""
    basis, _ = np.linalg.qr(np.stack([np.ones(len(plain)), plain], axis=1))
    rest: Floats = columns - basis @ (basis.T @ columns)
    return rest
