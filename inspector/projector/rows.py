"""Rows of a tensor as vectors: which tensors have any, which of their rows are taken, and which of these no training
reached.

Along any axis a tensor is cut into as many pieces as it is long there, and each piece is flattened: filters of a
convolution along axis 0, what reads one input channel along axis 1. The tensor is streamed; what is held is the rows
that are taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import to_float32
from inspector.checkpoint.dtypes import DTYPES, find_dtype
from inspector.checkpoint.types import Checkpoint, Shape, TensorInfo
from inspector.errors import UsageError
from inspector.health.axes import is_vocabulary
from inspector.health.checks.dead import dead_places
from inspector.health.checks.embedding_rows import untouched_rows
from inspector.health.roles import Role
from inspector.health.thresholds import DEFAULTS
from inspector.progress import Progress, silent
from inspector.projector.project import even_sample
from inspector.projector.report import Points
from inspector.units import human_shape
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import Decoded, TensorBytes
from inspector.weights.report import Rows
from inspector.weights.rows import row_means

#: Rows that are taken of one tensor, and numbers that are held of them.
MOST_ROWS = 50_000
MOST_NUMEL = 1 << 28
_AT_ONCE = 1 << 18
_LISTED = 1000


def may_be_projected(tensor: TensorInfo) -> bool:
    """Whether its shape and type allow it; reading says what else stands in the way."""
    dtype = find_dtype(tensor.dtype)
    if dtype is None or dtype.name == "bool" or "complex" in dtype.name:
        return False
    return len(tensor.shape) >= 2 and max(tensor.shape) >= 2 and math.prod(tensor.shape) > max(tensor.shape)


def usual_axis(role: Role) -> int:
    """The axis along which a weight's outputs lie: torch's layers have them along axis 0, its transposed convolutions
    along axis 1."""
    return 1 if role is Role.TRANSPOSED else 0


def held_nbytes(tensor: TensorInfo, axis: int) -> int:
    """Bytes of the rows that would be taken, before they are."""
    length = tensor.shape[axis]
    dims = tensor.numel // max(1, length)
    return 8 * min(length, MOST_ROWS) * dims if tensor.dtype == "float64" else 4 * min(length, MOST_ROWS) * dims


def proposed_tensor(tensors: Iterable[TensorInfo], roles: dict[tuple[str, ...], Role]) -> TensorInfo | None:
    """The one to begin with: an embedding, else the matrix or kernel with the most rows; None where there is none."""
    fit = [t for t in tensors if may_be_projected(t) and t.shape[0] >= 4]
    order = (Role.EMBEDDING, Role.LINEAR, Role.CONV)
    rank = {role: len(order) - place for place, role in enumerate(order)}
    weights = [t for t in fit if roles.get(t.path) in rank] or fit
    return max(weights, key=lambda t: (t.shape[0] >= 16, rank.get(roles[t.path], 0), t.shape[0]), default=None)


def read_points(
    checkpoint: Checkpoint,
    tensor: TensorInfo,
    *,
    axis: int | None = None,
    role: Role = Role.OTHER,
    most: int = MOST_ROWS,
    progress: Progress = silent,
) -> Points:
    """The rows along an axis (the usual one of its role where None) as vectors; above `most` an even sample of them.

    progress counts rows of axis 0. Raises UsageError where the tensor has no rows along that axis, ReadError where it
    has no numbers, CorruptFile where its bytes are cut off.
    """
    axis = usual_axis(role) if axis is None else axis
    place = TensorBytes(checkpoint=checkpoint, tensor=tensor, at_once=_AT_ONCE)
    decoded = find_decoder(tensor).decode(place)
    shape = decoded.shape
    if len(shape) < 2 or not may_be_projected(tensor) or decoded.per_element != 1:
        raise UsageError(
            f"{tensor.name} is {human_shape(tensor.shape)} of {tensor.dtype}: it has no rows of plain numbers.",
            hint="Choose a tensor of two or more dimensions.",
        )
    if not 0 <= axis < len(shape):
        raise UsageError(f"{tensor.name} has axes 0 to {len(shape) - 1}; there is no axis {axis}.")
    total = shape[axis]
    dims = math.prod(shape) // max(1, total)
    room = MOST_NUMEL // max(1, dims)
    if room < 2:
        raise UsageError(f"One row of {tensor.name} along axis {axis} has {dims:,} numbers, which is too long.")
    taken = even_sample(total, min(most, room))
    values = _read(decoded, shape, axis, taken, progress)
    finite = np.isfinite(values).all(axis=1)
    not_finite = tuple(taken[~finite].tolist())
    if not_finite:
        taken, values = taken[finite], values[finite]
    noun = _noun(role, axis, len(shape))
    notes = []
    if len(taken) + len(not_finite) < total:
        notes.append(f"An even sample of {len(taken) + len(not_finite):,} of the {total:,} {noun}s was read.")
    if decoding := decoded.decoding:
        notes.append(f"The numbers are {decoding.says}; so which {noun}s are dead is not judged.")
    marked, marked_as, how = (np.zeros(len(values), bool), "", "") if decoding else _marked(values, role, shape, axis)
    return Points(
        name=tensor.name,
        noun=noun,
        values=values,
        numbers=taken,
        total=total,
        not_finite=not_finite[:_LISTED],
        marked=marked,
        marked_as=marked_as,
        marked_how=how,
        notes=tuple(notes),
    )


def _noun(role: Role, axis: int, dimensions: int) -> str:
    if role in (Role.CONV, Role.DEPTHWISE, Role.TRANSPOSED) and dimensions > 2:
        return "filter" if axis == usual_axis(role) else "input channel" if axis == 1 - usual_axis(role) else "slice"
    return {0: "row", 1: "column"}.get(axis, "slice") if dimensions == 2 else "slice"


def _read(
    decoded: Decoded, shape: Shape, axis: int, taken: NDArray[np.int64], progress: Progress
) -> NDArray[np.floating]:
    """(taken, dims) in float32, or in float64 where float32 would not hold the numbers."""
    dtype = DTYPES[decoded.dtype]
    wide = dtype.native and dtype.itemsize > 2 and dtype.name != "float32"
    length, first = math.prod(shape[1:]), shape[0]
    kind = np.float64 if wide else np.float32
    if axis == 0:
        made = np.empty((len(taken), length), kind)
    else:
        made = np.empty((len(taken), first, length // shape[axis]), kind)
    at = 0
    for rows in _whole_rows(decoded, length, kind):
        progress(at, first, "reading")
        end = at + len(rows)
        if axis == 0:
            low, high = np.searchsorted(taken, (at, end))
            made[low:high] = rows[taken[low:high] - at]
        else:
            cut = np.moveaxis(rows.reshape(len(rows), *shape[1:]), axis, 0)[taken]
            made[:, at:end] = cut.reshape(len(taken), len(rows), -1)
        at = end
    progress(first, first, "read")
    return made.reshape(len(taken), -1)


def _whole_rows(decoded: Decoded, length: int, kind: type[np.floating]) -> Iterator[NDArray[np.floating]]:
    """(some, length): the chunks, cut where rows of axis 0 end."""
    native = DTYPES[decoded.dtype].native
    held: list[NDArray[np.floating]] = []
    count = 0
    for chunk in decoded.chunks:
        with np.errstate(over="ignore", invalid="ignore"):
            # Always a copy: the next chunk may lie in the same place.
            held.append(np.array(chunk if native else to_float32(chunk, decoded.dtype), kind))
        count += len(chunk)
        if count < length:
            continue
        flat = held[0] if len(held) == 1 else np.concatenate(held)
        whole = count // length
        yield flat[: whole * length].reshape(whole, length)
        held = [flat[whole * length :]]
        count -= whole * length


def _marked(values: NDArray[np.floating], role: Role, shape: Shape, axis: int) -> tuple[NDArray[np.bool_], str, str]:
    """(which, as what, by which sign), by the rules of the health checks over the rows that were taken."""
    flags = np.zeros(len(values), bool)
    rows = _measured(values)
    if axis == 0 and is_vocabulary(role, shape):
        found = untouched_rows(rows, DEFAULTS.shell_errors)
        if found is None:
            return flags, "untrained", ""
        flags[found[0]] = True
        # A single row of zeros says nothing by itself (it is the padding token's), and is dead beside untrained ones.
        dead = ~values.any(axis=1) & ~flags
        flags |= dead
        return flags, "untrained", f"{found[1]}, {int(dead.sum()):,} beside them all zero" if dead.any() else found[1]
    if not role.is_weight or len(values) < 4:
        return flags, "", ""
    means = row_means(rows)
    flags[dead_places(means, means[means > 0], DEFAULTS.dead)] = True
    how = f"hold no more than {DEFAULTS.dead:g} of the median {_noun(role, axis, len(shape))}'s mean magnitude"
    return flags, "dead", how if flags.any() else ""


def _measured(values: NDArray[np.floating]) -> Rows:
    """What the checks ask of rows."""
    sizes = np.abs(values)
    with np.errstate(over="ignore"):
        largest, total = sizes.max(axis=1).astype(np.float32), sizes.sum(axis=1, dtype=np.float64).astype(np.float32)
    return Rows(
        count=len(values),
        length=values.shape[1],
        columns=values.shape[1],
        largest=largest.tobytes(),
        total=total.tobytes(),
        across=b"",
    )
