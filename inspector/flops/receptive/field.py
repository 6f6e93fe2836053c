"""Of one tensor: which axes of the picture its dimensions are, and how far one element looks along them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

# Of a dimension: (axis of the picture, length), of those that were merged into it in order.
Atoms = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """dims: for each dimension of the tensor the axes of the picture in it. size, step: per axis, in pixels."""

    dims: tuple[Atoms, ...]
    size: tuple[Fraction, ...]
    step: tuple[Fraction, ...]

    def spread(self, axes: Sequence[int], lengths: Sequence[int]) -> Field:
        """All positions along these axes put together."""
        size, step = list(self.size), list(self.step)
        for axis, length in zip(axes, lengths, strict=True):
            size[axis] += (length - 1) * step[axis]
            step[axis] = Fraction(0)
        return replace(self, size=tuple(size), step=tuple(step))

    def without(self, dim: int) -> Field:
        """After a sum over one dimension, which keeps its place."""
        atoms = self.dims[dim]
        found = self.spread([axis for axis, _ in atoms], [length for _, length in atoms])
        return replace(found, dims=(*self.dims[:dim], (), *self.dims[dim + 1 :]))


def fits(field: Field, shape: Sequence[int]) -> bool:
    """Whether a tensor of this shape has the field's dimensions: what mixed them up otherwise is not believed."""
    return len(field.dims) == len(shape) and all(
        not atoms or math.prod(length for _, length in atoms) == size
        for atoms, size in zip(field.dims, shape, strict=True)
    )
