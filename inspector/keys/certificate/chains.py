"""One chain in numbers: what a norm hands on, through a kernel, against what the next norm remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.keys.certificate.activations import moments
from inspector.keys.certificate.types import Feed, Link, Norm

Floats = NDArray[np.float64]

_PIECE = 1 << 22  # elements of a kernel at once
#: Sides of the pictures that a kernel may have run over; nobody wrote down which. The first is so large that padding
#: at the border means nothing.
SIDES = (1e9, 14.0, 7.0, 4.0, 2.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """A kernel over its taps. plain: their sum, square: the sum of their squares, both (out, in of a group)."""

    plain: Floats
    square: Floats


def sums_of(kernel: NDArray[np.generic], *, transposed: bool = False, groups: int = 1) -> tuple[Sums, ...]:
    """The sums for pictures of each of the sides in `SIDES`; one where a kernel has a single tap.

    kernel: (out, in, *taps), or (in, out, *taps) transposed, of any real type; a piece at a time in float64.
    """
    shares = _shares(kernel.shape[2:])
    held = kernel.reshape(*kernel.shape[:2], -1)
    if transposed:
        inner, outer, taps = held.shape
        held = held.reshape(groups, inner // groups, outer, taps).swapaxes(1, 2).reshape(-1, inner // groups, taps)
        shares = shares[:1]  # it spreads what it is given, and meets no border
    plain, square = np.empty((2, len(shares), *held.shape[:2]))
    rows = max(1, _PIECE // max(1, held[0].size if len(held) else 1))
    for start in range(0, len(held), rows):
        piece = held[start : start + rows].astype(np.float64)
        plain[:, start : start + rows] = np.moveaxis(piece @ shares.T, 2, 0)
        square[:, start : start + rows] = np.moveaxis((piece * piece) @ shares.T, 2, 0)
    return tuple(Sums(plain=p, square=s) for p, s in zip(plain, square, strict=True))


def _shares(taps: tuple[int, ...]) -> Floats:
    """(sides, taps): the share of places in a padded picture of that side at which a tap meets the picture."""
    made = []
    for side in SIDES if any(size > 1 for size in taps) else SIDES[:1]:
        share = np.ones(1)
        for size in taps:
            away = np.abs(np.arange(size) - size // 2)
            share = np.outer(share, np.maximum(0.0, 1 - away / side)).reshape(-1)
        made.append(share)
    return np.array(made)


def through(sums: Floats, given: Floats, groups: int) -> Floats:
    """(out, columns) from (in, columns). Raises ValueError where widths do not fit."""
    outer, inner = sums.shape
    parts = given.reshape(groups, inner, -1)
    made: Floats = np.matmul(sums.reshape(groups, outer // groups, inner), parts).reshape(outer, -1)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The four vectors of a norm, (channels,) each, as float64."""

    weight: Floats
    bias: Floats
    mean: Floats
    var: Floats

    @property
    def untrained(self) -> bool:
        """Its statistics are those that it starts with."""
        return not self.mean.any() and bool((self.var == 1).all())


def vectors_of(norm: Norm, read: Callable[[str], Floats | None]) -> Vectors | None:
    """None for numbers that are missing or not finite, or sizes that differ. read: a vector by its name."""
    mean, var = read(norm.mean), read(norm.var)
    if mean is None or var is None or not mean.size:
        return None
    weight = read(norm.weight) if norm.weight else np.ones(mean.shape)
    bias = read(norm.bias) if norm.bias else np.zeros(mean.shape)
    if weight is None or bias is None:
        return None
    every = (weight, bias, mean, var)
    if any(v.ndim != 1 or v.shape != mean.shape or not np.isfinite(v).all() for v in every):
        return None
    return Vectors(weight=weight, bias=bias, mean=mean, var=var)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What comes into a kernel, channel by channel: (in,) each."""

    mean: Floats
    var: Floats


def given_by(link: Link, norms: Mapping[Norm, Vectors], activation: int) -> Given | None:
    """What a chain's norms hand on; None where a part of the input leaves none. activation: which of a feed's, by its
    place; the last one for feeds with fewer.
    """
    means, variances = [], []
    for feed in link.feeds:
        vectors = norms.get(feed.norm) if feed.norm is not None else None
        if vectors is None or len(vectors.weight) != feed.width:
            return None
        mean, var = moments_of(feed, vectors.weight, vectors.bias, activation)
        means.append(mean)
        variances.append(var)
    return Given(mean=np.concatenate(means), var=np.concatenate(variances))


def moments_of(feed: Feed, weight: Floats, bias: Floats, activation: int) -> tuple[Floats, Floats]:
    """As `moments`, by a feed's own activation."""
    name = feed.activations[min(activation, len(feed.activations) - 1)]
    return moments(weight, bias, name, feed.slope)


def spread(sums: Sums, var: Floats, groups: int) -> Floats:
    """Variance of what a kernel puts out, (out, columns), for inputs of these variances.

    Between neighbours that agree fully (the square of the sum) and not at all (the sum of squares): the middle.
    """
    return through((sums.square + sums.plain**2) / 2, var, groups)
