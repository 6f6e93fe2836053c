"""The vectors that are projected, and what a projection of them says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Vectors with what is known of each.

    name: of the tensor or module. noun: what one is called, "row". values: (n, d) float32 or float64, all finite.
    numbers: (n,) of each among all `total`, ascending. not_finite: numbers of those left out for NaN or infinity.
    marked: (n,) those that are dead or that no training reached. marked_as: "untrained" or "dead" ("" where rows are
    not judged), marked_how: half a sentence on what shows it, "" where none is marked. labels: (n) or (). notes: what
    was not done, in sentences.
    """

    name: str
    noun: str
    values: NDArray[np.floating]
    numbers: NDArray[np.int64]
    total: int
    not_finite: tuple[int, ...] = ()
    marked: NDArray[np.bool_]
    marked_as: str = ""
    marked_how: str = ""
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projection:
    """A map of points. The first fields are those of `Points`.

    dims: numbers of one vector. method: its id. seed: None where nothing is random. coordinates: (n, 2 or 3).
    shares: of the variance, that the directions hold, largest first; () where a method has no directions.
    says: how it was made, in sentences. norms: (n,) Euclidean lengths. apart: (n,) those far from the mean vector, in
    the full space; apart_from: the distance from which on. clusters: (n,) from 0, the largest first, None where there
    are none.
    """

    name: str
    noun: str
    total: int
    numbers: NDArray[np.int64]
    not_finite: tuple[int, ...]
    marked: NDArray[np.bool_]
    marked_as: str
    marked_how: str
    labels: tuple[str, ...]
    dims: int
    method: str
    seed: int | None
    coordinates: NDArray[np.float64]
    shares: tuple[float, ...]
    norms: NDArray[np.float64]
    apart: NDArray[np.bool_]
    apart_from: float
    clusters: NDArray[np.int64] | None
    says: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many are drawn."""
        return len(self.numbers)

    @property
    def components(self) -> int:
        """Of a coordinate: 2 or 3."""
        return int(self.coordinates.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """place: among the points. number: among all rows. distance: by the metric that was asked for."""

    place: int
    number: int
    distance: float
