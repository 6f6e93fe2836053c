"""Maps of vectors: rows of a tensor, what pictures are at a layer; and who is next to whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.architectures.targets import parse_target
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Preprocessing
from inspector.checkpoint.types import TensorInfo
from inspector.doctor.maps_asked import MapsAsked
from inspector.doctor.run import Wish
from inspector.errors import InspectorError, UsageError
from inspector.feature_maps import features_of
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import checkpoint_of, ready_of, recognition_of, state_of
from inspector.jobs.kinds.memory import weights_nbytes
from inspector.jobs.kinds.pictures import decoded
from inspector.jobs.subjects import FileRef, PictureRef, PicturesProjected, ProjectionAsked
from inspector.projections import points_of
from inspector.projector.neighbours import Metric, nearest
from inspector.projector.project import project
from inspector.projector.report import Neighbour, Points, Projection
from inspector.projector.rows import held_nbytes
from inspector.render.screen import at_screen_size
from inspector.units import counted

# Of what the kinds may take anyway, the most for the vectors.
_SMALL_NBYTES = 100_000_000
# What a pass keeps for each number of its input, as the passes of the doctor reckon.
_PASS_NBYTES = 3000
_FORESEEN_NBYTES = 400_000_000
_THUMBNAIL = 64


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Features:
    """Of the pictures that ran. places: among those that were asked for."""

    places: tuple[int, ...]
    values: NDArray[np.float32]
    thumbnails: tuple[NDArray[np.uint8], ...]
    answers: tuple[int, ...]
    failed: tuple[tuple[str, str], ...]


def pictures(
    bench: Bench,
    file: FileRef,
    chosen: tuple[PictureRef, ...],
    names: tuple[str, ...],
    preprocessing: Preprocessing,
    place: MapsAsked,
    asked: ProjectionAsked,
) -> PicturesProjected:
    """Pictures by what they are at a module, each by one pass. names: of the pictures.

    One that cannot be read or run is left out, and why is told. Raises UsageError where too few are left.
    """
    key = ("features", file, chosen, preprocessing, place)
    found = bench.keep(
        key,
        lambda: _features(bench, file, chosen, names, preprocessing, place),
        nbytes=lambda made: made.values.nbytes + sum(one.nbytes for one in made.thumbnails),
        tag=file.sha256,
    )
    if len(found.places) < 2:
        why = f" {found.failed[0][0]}: {found.failed[0][1]}" if found.failed else ""
        raise UsageError(f"{counted(len(found.places), 'picture')} could be run; a map takes two.{why}")
    finite = np.isfinite(found.values).all(axis=1)
    kept = np.flatnonzero(finite)
    points = Points(
        name=place.path or "the model",
        noun="picture",
        values=found.values[kept],
        numbers=np.asarray(found.places, np.int64)[kept],
        total=len(chosen),
        not_finite=tuple(found.places[at] for at in np.flatnonzero(~finite)),
        marked=np.zeros(len(kept), bool),
        labels=tuple(names[found.places[at]] for at in kept),
    )
    made = project(
        points,
        method=asked.method,
        components=asked.components,
        seed=asked.seed,
        clusters=asked.clusters,
        progress=bench.progress,
    )
    return PicturesProjected(
        points=points,
        projection=made,
        thumbnails=tuple(found.thumbnails[at] for at in kept),
        answers=tuple(found.answers[at] for at in kept),
        failed=found.failed,
    )


def _features(
    bench: Bench,
    file: FileRef,
    chosen: tuple[PictureRef, ...],
    names: tuple[str, ...],
    preprocessing: Preprocessing,
    place: MapsAsked,
) -> _Features:
    ready = ready_of(bench, file)
    best = recognition_of(bench, file).best if file.code is None else None
    spec = parse_target(file.confirmed).spec if file.confirmed else best.spec if best is not None else None
    vectors: list[NDArray[np.float32]] = []
    places: list[int] = []
    answers: list[int] = []
    thumbnails: list[NDArray[np.uint8]] = []
    failed: list[tuple[str, str]] = []
    for number, (one, name) in enumerate(zip(chosen, names, strict=True)):
        bench.progress(number, len(chosen), name)
        try:
            picture = decoded(bench, one)
            batch, _ = prepare(picture, preprocessing)
            nbytes = weights_nbytes(ready.model) + _PASS_NBYTES * batch.numel()
            if nbytes > _FORESEEN_NBYTES:
                bench.need(nbytes)
            vector, answer = features_of(ready.model, spec, Wish(tensors={"picture": batch}), place)
        except InspectorError as error:
            failed.append((name, error.says))
            continue
        if vectors and len(vector) != len(vectors[0]):
            failed.append((name, f"It has {len(vector):,} channels there, the first picture {len(vectors[0]):,}."))
            continue
        vectors.append(vector)
        places.append(number)
        answers.append(-1 if answer is None else answer)
        thumbnails.append(np.asarray(at_screen_size(picture, _THUMBNAIL).convert("RGB")))
    return _Features(
        places=tuple(places),
        values=np.stack(vectors) if vectors else np.empty((0, 0), np.float32),
        thumbnails=tuple(thumbnails),
        answers=tuple(answers),
        failed=tuple(failed),
    )
