"""What a method of projection is given, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.progress import Progress

Vectors = NDArray[np.floating]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """coordinates: (n, k). shares: of the variance, by direction; () where there are none. says: how, in sentences."""

    coordinates: NDArray[np.float64]
    shares: tuple[float, ...] = ()
    says: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method. needs: the package that it takes, "" for none. seeded: whether chance is in it. most: points that it
    takes. least: fewer make no map. project: (vectors, components, seed, progress)."""

    id: str
    title: str
    says: str
    needs: str
    seeded: bool
    most: int
    least: int
    project: Callable[[Vectors, int, int, Progress], Placed]
