"""Principal component analysis: the flat map that keeps most of the variance; nothing in it is chance."""

from __future__ import annotations

from inspector.progress import Progress
from inspector.projector.methods.method import Method, Placed, Vectors
from inspector.projector.pca import principal_components


def _project(values: Vectors, components: int, seed: int, progress: Progress) -> Placed:
    found = principal_components(values, components, progress=progress)
    says = () if found.exact else ("The directions were found by iteration, which had not quite settled.",)
    return Placed(coordinates=found.coordinates, shares=tuple(found.shares.tolist()), says=says)


METHOD = Method(
    id="pca",
    title="PCA",
    says="The directions in which the vectors differ most. Distances on the map are true distances, shortened.",
    needs="",
    seeded=False,
    most=50_000,
    least=2,
    project=_project,
)
