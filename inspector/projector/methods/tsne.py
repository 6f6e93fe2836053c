"""t-SNE by scikit-learn (van der Maaten and Hinton 2008; Barnes-Hut 2014): who is next to whom."""

from __future__ import annotations

import numpy as np

from inspector.installed import require
from inspector.progress import Progress
from inspector.projector.methods.before import shortened
from inspector.projector.methods.method import Method, Placed, Vectors

_PERPLEXITY = 30.0


def _project(values: Vectors, components: int, seed: int, progress: Progress) -> Placed:
    require("sklearn", "t-SNE")
    from sklearn.manifold import TSNE

    short, says = shortened(values, progress)
    progress(2, 3, "neighbours; this step cannot be told in parts")
    # A third of the points at most, as scikit-learn's own limit of one less is far too many to be neighbours.
    perplexity = min(_PERPLEXITY, max(1.0, (len(short) - 1) / 3))
    made = TSNE(n_components=components, perplexity=perplexity, init="pca", random_state=seed, n_jobs=1)
    # PCA's own scale in float32 would overflow for huge weights, and t-SNE knows no scale.
    coordinates = np.asarray(made.fit_transform(short / (np.abs(short).max() or 1.0)), np.float64)
    return Placed(coordinates=coordinates, says=(*says, f"Perplexity {perplexity:.3g}."))


METHOD = Method(
    id="tsne",
    title="t-SNE",
    says="Keeps neighbours together. Distances between groups, and their sizes, mean nothing.",
    needs="sklearn",
    seeded=True,
    most=10_000,
    least=4,
    project=_project,
)
