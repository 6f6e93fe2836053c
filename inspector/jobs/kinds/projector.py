"""Maps of vectors: rows of a tensor, what pictures are at a layer; and who is next to whom."""

from __future__ import annotations

from inspector.checkpoint.types import TensorInfo
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import checkpoint_of, state_of
from inspector.jobs.subjects import FileRef, ProjectionAsked
from inspector.projections import points_of
from inspector.projector.neighbours import Metric, nearest
from inspector.projector.project import project
from inspector.projector.report import Neighbour, Points, Projection
from inspector.projector.rows import held_nbytes

# Of what the kinds may take anyway, the most for the vectors.
_SMALL_NBYTES = 100_000_000


def projection(
    bench: Bench, file: FileRef, path: tuple[str, ...], axis: int | None, asked: ProjectionAsked
) -> Projection:
    """The rows of one tensor as a map."""
    return project(
        _points(bench, file, path, axis),
        method=asked.method,
        components=asked.components,
        seed=asked.seed,
        clusters=asked.clusters,
        progress=bench.progress,
    )


def neighbours(
    bench: Bench, file: FileRef, path: tuple[str, ...], axis: int | None, number: int, metric: str, count: int
) -> tuple[Neighbour, ...]:
    """The rows nearest to one."""
    return nearest(_points(bench, file, path, axis), number, metric=Metric(metric), count=count)


def vectors(bench: Bench, file: FileRef, path: tuple[str, ...], axis: int | None) -> Points:
    """The vectors themselves, for a file of them."""
    return _points(bench, file, path, axis)


def _points(bench: Bench, file: FileRef, path: tuple[str, ...], axis: int | None) -> Points:
    checkpoint = checkpoint_of(bench, file)
    state = state_of(checkpoint, file) or checkpoint.weights
    # By its name in the state dict, not in the file.
    tensors = state.tensors if state is not None else checkpoint.tensors
    tensor: TensorInfo = next(one for one in tensors if one.path == path)
    nbytes = held_nbytes(tensor, axis or 0)
    if nbytes > _SMALL_NBYTES:
        # As it is held, and sizes of it for the checks.
        bench.need(3 * nbytes)

    def read() -> Points:
        return points_of(checkpoint, tensor, state, axis=axis, progress=bench.progress)

    return bench.keep(
        ("points", file.sha256, file.state, path, axis), read, nbytes=lambda p: p.values.nbytes, tag=file.sha256
    )
