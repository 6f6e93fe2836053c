"""Points to a map: the method's coordinates, and what else is told of each point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inspector.errors import UsageError
from inspector.progress import Progress, silent
from inspector.projector.clusters import clusters_of
from inspector.projector.methods import method_named
from inspector.projector.methods.method import Method, Placed
from inspector.projector.report import Points, Projection
from inspector.units import counted

# Tukey's outer fence (Exploratory Data Analysis 1977): so many times the middle half's width beyond it.
_FENCE = 3.0
_LEAST_APART = 8
_ROWS = 4096


def project(
    points: Points,
    *,
    method: str = "pca",
    components: int = 2,
    seed: int = 0,
    clusters: int = 0,
    progress: Progress = silent,
) -> Projection:
    """A map of the points. clusters: of how many groups each is told its own, 0 for none.

    Where the method takes fewer points than there are, an even sample of them is drawn, and said. Raises UsageError for
    an unknown method or too few points, MissingLibrary where the method's package is not installed.
    """
    entry = method_named(method)
    if components not in (2, 3):
        raise UsageError(f"A map has 2 or 3 directions, not {components}.")
    if len(points.values) < entry.least:
        raise UsageError(
            f"{points.name} has {counted(len(points.values), points.noun)} to draw; "
            f"{entry.title} takes {entry.least} or more."
        )
    left_out: tuple[str, ...] = ()
    if len(points.values) > entry.most:
        left_out = (f"{entry.title} takes {entry.most:,} points: an even sample of the {len(points.values):,}.",)
        points = sampled(points, entry.most)
    placed = _placed(entry, points, components, seed, progress)
    coordinates = placed.coordinates
    if coordinates.shape[1] < components:
        missing = components - coordinates.shape[1]
        coordinates = np.pad(coordinates, ((0, 0), (0, missing)))
    norms, distances = lengths_of(points.values)
    fence = _fence(distances)
    return Projection(
        name=points.name,
        noun=points.noun,
        total=points.total,
        numbers=points.numbers,
        not_finite=points.not_finite,
        marked=points.marked,
        marked_as=points.marked_as,
        marked_how=points.marked_how,
        labels=points.labels,
        dims=int(points.values.shape[1]),
        method=entry.id,
        seed=seed if entry.seeded or clusters else None,
        coordinates=coordinates,
        shares=placed.shares,
        norms=norms,
        apart=distances > fence,
        apart_from=fence,
        clusters=clusters_of(points.values, clusters, seed) if clusters else None,
        says=(*points.notes, *left_out, *placed.says),
    )


def _placed(entry: Method, points: Points, components: int, seed: int, progress: Progress) -> Placed:
    values = points.values
    if (values == values[0]).all():
        # scikit-learn's t-SNE would divide by their deviation and crash the process.
        says = (f"All {points.noun}s are equal, so there is nothing to draw apart.",)
        return Placed(coordinates=np.zeros((len(values), components)), says=says)
    return entry.project(values, min(components, *values.shape), seed, progress)


def sampled(points: Points, most: int) -> Points:
    """An even sample of that many, with the first of them."""
    kept = even_sample(len(points.values), most)
    return replace(
        points,
        values=points.values[kept],
        numbers=points.numbers[kept],
        marked=points.marked[kept],
        labels=tuple(points.labels[at] for at in kept) if points.labels else (),
    )


def even_sample(count: int, most: int) -> NDArray[np.int64]:
    """(at most `most`,) places from 0 to count - 1, as evenly spread as they can be; the same on every run."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    return np.arange(most, dtype=np.int64) * count // most


def lengths_of(values: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n,) Euclidean length of each, and its distance from the mean of all."""
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    parts = [(values[at : at + _ROWS].astype(np.float64) / scale) for at in range(0, len(values), _ROWS)]
    mean = np.add.reduce([part.sum(axis=0) for part in parts]) / max(1, len(values))
    norms = np.concatenate([np.linalg.norm(part, axis=1) for part in parts])
    distances = np.concatenate([np.linalg.norm(part - mean, axis=1) for part in parts])
    return norms * scale, distances * scale


def _fence(distances: NDArray[np.float64]) -> float:
    """The distance from which on a vector stands apart; infinite where there are too few to tell."""
    if len(distances) < _LEAST_APART:
        return float("inf")
    low, high = np.quantile(distances, (0.25, 0.75))
    # Where the middle half is equal to the last digit, rounding alone would stand apart.
    return float(high + _FENCE * max(high - low, 1e-9 * high))
