"""The rows of a tensor of a file as a map, with what the file, or a list beside it, calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.types import Recognition
from inspector.cam.inputs.classes import class_names
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import UsageError
from inspector.health.roles import Role, roles_of
from inspector.progress import Progress, silent
from inspector.projector.labels import labels_at
from inspector.projector.project import project
from inspector.projector.report import Points, Projection
from inspector.projector.rows import read_points

_HEADS = (Role.LINEAR, Role.CONV)


def project_rows(
    checkpoint: Checkpoint,
    name: str,
    *,
    state: StateDict | None = None,
    axis: int | None = None,
    method: str = "pca",
    components: int = 2,
    seed: int = 0,
    labels: Sequence[str] = (),
) -> Projection:
    """The rows of one tensor (by its name in the state dict; the file's weights when not given) as a map.

    axis: along which the rows lie; None for the one along which a weight's outputs lie. method: "pca", "tsne", "umap".
    components: 2 or 3. labels: of the rows, in their order. Raises UsageError for what there is not, ReadError and
    CorruptFile for numbers that cannot be read, MissingLibrary where the method's package is not installed.
    """
    points = points_of(checkpoint, find_tensor(checkpoint, name, state), state, axis=axis)
    if labels:
        points = replace(points, labels=labels_at(labels, points.numbers.tolist()))
    return project(points, method=method, components=components, seed=seed)


def points_of(
    checkpoint: Checkpoint,
    tensor: TensorInfo,
    state: StateDict | None = None,
    *,
    axis: int | None = None,
    progress: Progress = silent,
) -> Points:
    """Its rows as vectors. Raises as `read_points`."""
    return read_points(checkpoint, tensor, axis=axis, role=role_of(checkpoint, tensor, state), progress=progress)


def role_of(checkpoint: Checkpoint, tensor: TensorInfo, state: StateDict | None = None) -> Role:
    """What it is for, among its siblings."""
    return roles_of(_tensors(checkpoint, state)).get(tensor.path, Role.OTHER)


def find_tensor(checkpoint: Checkpoint, name: str, state: StateDict | None = None) -> TensorInfo:
    """Raises UsageError with close names."""
    import difflib

    tensors = _tensors(checkpoint, state)
    found = next((tensor for tensor in tensors if tensor.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [tensor.name for tensor in tensors], n=3, cutoff=0.5)
        raise UsageError(
            f"{checkpoint.origin.name} has no tensor {name!r} there.",
            hint=f"Close: {', '.join(near)}." if near else "Its tensors are listed with the file.",
        )
    return found


def head_labels(
    checkpoint: Checkpoint,
    recognition: Recognition | None,
    tensor: TensorInfo,
    state: StateDict | None = None,
    *,
    axis: int = 0,
) -> tuple[str, ...]:
    """Names of the classes where the tensor is the head's weight: the last weight of the file with a row for each.

    () where nobody names them, or nothing shows that its rows are classes.
    """
    names = class_names(recognition, checkpoint)
    if not names or axis != 0:
        return ()
    tensors = _tensors(checkpoint, state)
    roles = roles_of(tensors)
    heads = [t for t in tensors if roles[t.path] in _HEADS and t.shape[0] == len(names)]
    return names if heads and heads[-1].path == tensor.path else ()


def _tensors(checkpoint: Checkpoint, state: StateDict | None) -> tuple[TensorInfo, ...]:
    state = state or checkpoint.weights
    return state.tensors if state else checkpoint.tensors
