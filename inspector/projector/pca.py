"""Principal components: the directions in which vectors differ most, the same on every run.

From the eigenvectors of X^T X or X X^T of the centred vectors, whichever is smaller, added up in float64 some rows at
a time; then once more inside the space that these span (Rayleigh-Ritz), which gives the coordinates the accuracy of a
singular value decomposition. Where the smaller side is too long for that, by subspace iteration from a fixed start
(Halko 2011, arXiv:0909.4061, section 4.5). The sign of a direction is such that its largest loading is positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.progress import Progress, silent

Array = NDArray[np.float64]
Vectors = NDArray[np.floating]

#: The smaller side up to which the matrix of products is decomposed whole.
MOST_SIDE = 4096
_ROWS = 1024
_OVER = 8
_ROUNDS = 40
_SETTLED = 1e-9
# Below this share of the largest deviation there is nothing but rounding.
_NOTHING = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Components:
    """mean: (d,). directions: (k, d), orthonormal. coordinates: (n, k). shares: (k,) of the variance, falling.
    exact: False where the iteration ended before it had settled."""

    mean: Array
    directions: Array
    coordinates: Array
    shares: Array
    exact: bool


def principal_components(values: Vectors, count: int = 3, *, progress: Progress = silent) -> Components:
    """values: (n, d), finite, n and d at least 1. count: of the directions wanted; fewer where there are fewer.

    progress counts passes over the vectors. Raises only what progress raises.
    """
    values, scale = _scaled(values)
    n, d = values.shape
    k = min(count, n, d)
    progress(0, 3, "mean")
    mean = np.add.reduce([part.sum(axis=0, dtype=np.float64) for part in _parts(values)]) / n
    side, wide = min(n, d), min(n, d, k + _OVER)
    exact = True
    total = float(sum(np.square(part - mean).sum() for part in _parts(values)))
    if not total:
        return Components(
            mean=mean * scale, directions=np.eye(k, d), coordinates=np.zeros((n, k)), shares=np.zeros(k), exact=True
        )
    progress(1, 3, "products")
    if side <= MOST_SIDE:
        basis = _by_products(values, mean, wide, lambda: progress(1, 3, "products"))
    else:
        basis, exact = _by_iteration(values, mean, wide, lambda: progress(1, 3, "directions"))
    progress(2, 3, "coordinates")
    # Inside the span the singular values decide, and no square of them is taken.
    inner = np.concatenate([(part - mean) @ basis for part in _parts(values)])
    left, deviations, right = np.linalg.svd(inner, full_matrices=False)
    directions = right[:k] @ basis.T
    coordinates = left[:, :k] * deviations[:k]
    coordinates[:, deviations[:k] <= _NOTHING * deviations[0]] = 0.0
    signs = np.sign(directions[np.arange(k), np.argmax(np.abs(directions), axis=1)])
    progress(3, 3, "done")
    return Components(
        mean=mean * scale,
        directions=directions * signs[:, None],
        coordinates=coordinates * signs * scale,
        shares=np.minimum(np.square(deviations[:k]) / total, 1.0),
        exact=exact,
    )


def _by_products(values: Vectors, mean: Array, wide: int, tell: Callable[[], None]) -> Array:
    """(d, wide) orthonormal columns that span the strongest directions."""
    n, d = values.shape
    if d <= n:
        products = np.zeros((d, d))
        for part in _parts(values):
            tell()
            centred = part - mean
            products += centred.T @ centred
        return np.asarray(np.linalg.eigh(products)[1][:, ::-1][:, :wide])
    products = np.zeros((n, n))
    for at in range(0, d, _ROWS):
        tell()
        centred = values[:, at : at + _ROWS].astype(np.float64) - mean[at : at + _ROWS]
        products += centred @ centred.T
    outer = np.linalg.eigh(products)[1][:, ::-1][:, :wide]
    return np.asarray(np.linalg.qr(_across(values, mean, outer))[0])


def _by_iteration(values: Vectors, mean: Array, wide: int, tell: Callable[[], None]) -> tuple[Array, bool]:
    """The same, and whether the variance along them had settled."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((values.shape[1], wide)))[0]
    before = np.zeros(wide)
    for _ in range(_ROUNDS):
        tell()
        image = np.concatenate([(part - mean) @ basis for part in _parts(values)])
        basis, triangle = np.linalg.qr(_across(values, mean, image))
        now = np.sort(np.linalg.svd(triangle, compute_uv=False))[::-1]
        if np.all(np.abs(now - before)[: wide - _OVER] <= _SETTLED * now[0]):
            return basis, True
        before = now
    return basis, False


def _across(values: Vectors, mean: Array, outer: Array) -> Array:
    """(d, k) of the centred vectors' transpose with (n, k)."""
    made = np.zeros((values.shape[1], outer.shape[1]))
    at = 0
    for part in _parts(values):
        made += (part - mean).T @ outer[at : at + len(part)]
        at += len(part)
    return made


def _parts(values: Vectors) -> Iterator[Array]:
    """Some rows at a time, so that no second copy in float64 is made of all of them."""
    for at in range(0, len(values), _ROWS):
        yield values[at : at + _ROWS].astype(np.float64)


def _scaled(values: Vectors) -> tuple[Vectors, float]:
    """Numbers whose squares float64 can hold, and the power of two that they were divided by."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or 1e-100 < largest < 1e100:
        return values, 1.0
    scale = 2.0 ** int(np.floor(np.log2(largest)))
    return values.astype(np.float64) / scale, scale
