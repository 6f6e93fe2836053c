"""UMAP by umap-learn (McInnes 2018, arXiv:1802.03426): who is next to whom, and some of what lies further away."""

from __future__ import annotations

import warnings

import numpy as np

from inspector.installed import require
from inspector.progress import Progress
from inspector.projector.methods.before import shortened
from inspector.projector.methods.method import Method, Placed, Vectors

_NEIGHBOURS = 15
# Its spectral start takes more points than directions and one.
_SPECTRAL = 8


def _project(values: Vectors, components: int, seed: int, progress: Progress) -> Placed:
    require("umap", "UMAP")
    progress(0, 3, "loading the library, which compiles its loops when it is first used")
    with warnings.catch_warnings():
        # What a seed costs, and that there are few points, is known.
        warnings.simplefilter("ignore")
        from umap import UMAP

        short, says = shortened(values, progress)
        progress(2, 3, "neighbours; this step cannot be told in parts")
        neighbours = min(_NEIGHBOURS, len(short) - 1)
        start = "spectral" if len(short) > max(_SPECTRAL, components + 2) else "random"
        made = UMAP(n_components=components, n_neighbors=neighbours, init=start, random_state=seed, n_jobs=1)
        scaled = (short / (np.abs(short).max() or 1.0)).astype(np.float32)
        coordinates = np.asarray(made.fit_transform(scaled), np.float64)
    return Placed(coordinates=coordinates, says=(*says, f"{neighbours} neighbours."))


METHOD = Method(
    id="umap",
    title="UMAP",
    says="Keeps neighbours together and groups apart. Distances between groups mean little.",
    needs="umap",
    seeded=True,
    most=20_000,
    least=4,
    project=_project,
)
