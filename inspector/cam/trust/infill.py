"""Pixels filled in from their surroundings: each becomes the weighted mean of its neighbours, known or filled in.

Source: Rong and others, "A Consistent and Efficient Evaluation Strategy for Attribution Methods", ICML 2022 (arXiv
2202.00449), section 4.2: a sixth of each neighbour beside it and a twelfth of each across a corner.

The linear system is a discrete Laplace equation, so conjugate gradients behind one multigrid cycle need four to ten
steps at any size. In NumPy: on maps this small torch's threads wait for each other longer than they work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_PRECISION = 1e-3
_MOST_STEPS = 100
# The coarsest grid has a side of at least this many cells; there plain steps are enough.
_SMALL = 8
_COARSEST_STEPS = 8

Array = NDArray[Any]


def impute(picture: Tensor, mask: Tensor, pause: Callable[[], None] = lambda: None) -> Tensor:
    """(C, H, W) with the masked pixels filled in, solved until the rest is a thousandth of the right-hand side.

    mask: (H, W) of bool. A picture without known pixels becomes its own mean. pause: called at each step; raising from
    it stops the work. Computed on the CPU, in float64 for a picture of that type, else in float32.
    """
    if not bool(mask.any()):
        return picture
    if bool(mask.all()):
        return picture.mean(dim=(1, 2), keepdim=True).expand_as(picture)
    values = picture.detach().cpu().to(torch.float64 if picture.dtype == torch.float64 else torch.float32).numpy()
    unknown = mask.cpu().numpy()
    filled = torch.from_numpy(_solve(values, unknown, pause)).to(picture)
    return torch.where(mask.to(picture.device), filled, picture)


class _Grid:
    """One level. unknown, exists: (h, w) of 0 and 1. degree: (h, w), the sum of the weights of a cell's neighbours."""

    def __init__(self, unknown: Array, exists: Array) -> None:
        self.unknown = unknown
        self.exists = exists
        self.degree = spread(np.pad(exists, 1)[None])[0]
        self.inverse = np.divide(unknown, self.degree, out=np.zeros_like(unknown), where=self.degree > 0)

    def apply(self, x: Array) -> Array:
        """degree x - spread(x) at the unknown cells. x: (C, h + 2, w + 2), 0 at the border and at known cells."""
        made = spread(x)
        made -= self.degree * x[:, 1:-1, 1:-1]
        made *= -self.unknown
        return made

    def halved(self) -> _Grid:
        """Cells of two by two; known where one of them is, so that what is known stays known on every level."""
        height, width = self.unknown.shape
        cells = (height // 2, 2, width // 2, 2)
        exists = self.exists.reshape(cells).max(axis=(1, 3))
        known = (self.exists - self.unknown).reshape(cells).max(axis=(1, 3))
        return _Grid(exists * (1 - known), exists)


def _solve(values: Array, mask: Array, pause: Callable[[], None]) -> Array:
    """(C, H, W) with the solution at the masked pixels; elsewhere anything."""
    _, height, width = values.shape
    count = 0
    while min(height, width) >> (count + 1) >= _SMALL:
        count += 1
    block = 1 << count
    beyond = ((0, -height % block), (0, -width % block))
    grids = [_Grid(np.pad(mask.astype(values.dtype), beyond), np.pad(np.ones(mask.shape, values.dtype), beyond))]
    while len(grids) <= count and grids[-1].unknown.any():
        grids.append(grids[-1].halved())
    fine = grids[0]

    mean = values[:, ~mask].mean(axis=1)[:, None, None]
    known = np.where(mask, 0, values - mean)
    rest = spread(np.pad(known, ((0, 0), (1, beyond[0][1] + 1), (1, beyond[1][1] + 1)))) * fine.unknown
    enough = _PRECISION**2 * _dot(rest, rest)
    x = np.zeros((len(rest), rest.shape[1] + 2, rest.shape[2] + 2), rest.dtype)
    way, size = np.zeros_like(x), np.ones(len(rest))
    for _ in range(_MOST_STEPS):
        left = _dot(rest, rest)
        # Not finite: nothing gets better by going on.
        if not np.isfinite(left).all() or (left <= enough).all():
            break
        pause()
        better = _cycle(grids, 0, rest)
        new = _dot(rest, better[:, 1:-1, 1:-1])
        way = better + _each(new, size, rest.dtype) * way
        size = new
        bent = fine.apply(way)
        step = _each(size, _dot(way[:, 1:-1, 1:-1], bent), rest.dtype)
        x += step * way
        rest = rest - step * bent
    found: Array = x[:, 1 : height + 1, 1 : width + 1] + mean
    return found


def _cycle(grids: list[_Grid], level: int, right: Array) -> Array:
    """About the solution (C, h + 2, w + 2) for a right-hand side (C, h, w): a step, the rest at half the size, a step.

    Jacobi's steps take two thirds of what is rough with this stencil; before and after, they keep the cycle symmetric.
    """
    grid = grids[level]
    x = np.zeros((len(right), right.shape[1] + 2, right.shape[2] + 2), right.dtype)
    inner = x[:, 1:-1, 1:-1]
    inner += right * grid.inverse
    if level + 1 < len(grids):
        coarser = grids[level + 1]
        rest = _down(right - grid.apply(x)) * coarser.unknown
        inner += _up(_cycle(grids, level + 1, rest)) * grid.unknown
        inner += (right - grid.apply(x)) * grid.inverse
    else:
        for _ in range(_COARSEST_STEPS):
            inner += (right - grid.apply(x)) * grid.inverse
    return x


def spread(x: Array) -> Array:
    """(C, h, w): the weighted sum of each cell's neighbours. x: (C, h + 2, w + 2), with its border.

    As (1, 2, 1) down and across less the cell itself.
    """
    rows = x[..., :-2] + x[..., 2:]
    rows += 2 * x[..., 1:-1]
    made: Array = rows[:, :-2] + rows[:, 2:]
    made += 2 * rows[:, 1:-1]
    made -= 4 * x[:, 1:-1, 1:-1]
    made /= 12
    return made


def _up(x: Array) -> Array:
    """(C, h + 2, w + 2) to (C, 2 h, 2 w), bilinear between cell centres."""
    for axis in (1, 2):
        x = np.moveaxis(x, axis, 1)
        near, far = 0.75 * x[:, 1:-1], 0.25 * x
        made = np.empty((x.shape[0], 2 * near.shape[1], x.shape[2]), x.dtype)
        made[:, 0::2] = near + far[:, :-2]
        made[:, 1::2] = near + far[:, 2:]
        x = np.moveaxis(made, 1, axis)
    return x


def _down(x: Array) -> Array:
    """(C, 2 h, 2 w) to (C, h, w): the transpose of `_up`."""
    for axis in (1, 2):
        x = np.pad(np.moveaxis(x, axis, 1), ((0, 0), (1, 1), (0, 0)))
        made = 0.75 * (x[:, 1:-1:2] + x[:, 2:-1:2]) + 0.25 * (x[:, 0:-2:2] + x[:, 3::2])
        x = np.moveaxis(made, 1, axis)
    return x


def _dot(one: Array, other: Array) -> Array:
    """(C,) in float64."""
    found: Array = np.einsum("chw,chw->c", one, other, dtype=np.float64)
    return found


def _each(above: Array, below: Array, kind: np.dtype[Any]) -> Array:
    """(C, 1, 1), 0 where a channel is solved already."""
    found = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found.astype(kind)[:, None, None]
