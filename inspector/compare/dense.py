"""The numbers of a tensor as they are held against another's: every element in row-major order, also of sparse ones.

Two sparse tensors with the same stored values at other places are not the same, and a sparse one can be a dense one's
equal: so small ones are written out, and others refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import read_array
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import TensorInfo
from inspector.compare.kernel import values
from inspector.errors import ReadError
from inspector.units import counted
from inspector.weights.decoded import find_decoder
from inspector.weights.decoded.types import Decoded, TensorBytes
from inspector.weights.report import Decoding, NumberKind

#: Elements of a sparse tensor, zeros included, up to which it is written out; and of its stored values.
MOST_DENSE = 1 << 22


def decode(place: TensorBytes) -> Decoded:
    """Its elements, `place.at_once` in a piece. Raises ReadError where they cannot be had, CorruptFile for cut data."""
    if not is_sparse(place.tensor):
        return find_decoder(place.tensor).decode(place)
    dense = _written_out(place)
    says = f"{counted(place.tensor.numel, 'element')} of a sparse tensor, zeros included"
    return Decoded(
        dtype=dense.dtype.name,
        shape=(),
        chunks=place.watch(_cut(dense.reshape(-1), place.at_once)),
        decoding=Decoding(kind=NumberKind.VALUES, dtype=dense.dtype.name, says=says),
    )


def is_sparse(tensor: TensorInfo) -> bool:
    """Whether the file holds only some of its elements."""
    return tensor.layout.startswith("sparse")


def _cut(numbers: NDArray[Any], count: int) -> Iterator[NDArray[Any]]:
    return (numbers[at : at + count] for at in range(0, len(numbers), count))


def _written_out(place: TensorBytes) -> NDArray[Any]:
    tensor = place.tensor
    how = tensor.layout.removeprefix("sparse").strip("_").upper()
    parts = tensor.encoding.parts if tensor.encoding is not None else ()
    dtype = find_dtype(parts[-1].dtype) if parts else None
    if len(parts) not in (2, 3) or dtype is None or any(part.layout != "strided" for part in parts):
        raise ReadError(f"it is stored as sparse {how}, and its indices and values are not known")
    if how not in ("COO", "CSR", "CSC") or "complex" in parts[-1].dtype:
        raise ReadError(f"it is stored as sparse {how} of {parts[-1].dtype}, which is not held against other tensors")
    if max(tensor.numel, *(part.numel for part in parts)) > MOST_DENSE:
        raise ReadError(
            f"it is sparse and has {tensor.numel:,} elements: places are compared up to {MOST_DENSE:,} of them"
        )
    stored = values(read_array(place.checkpoint, parts[-1]).reshape(-1), parts[-1].dtype)
    stored = stored.reshape(parts[-1].shape)
    indices = [read_array(place.checkpoint, part).astype(np.int64) for part in parts[:-1]]
    at = indices[0] if how == "COO" else _coordinates(indices, len(stored), rows_first=how == "CSR")
    dense = np.zeros(tensor.shape, stored.dtype)
    count = at.shape[0] if at is not None and at.ndim == 2 else 0
    if (
        at is None
        or not 0 < count <= dense.ndim
        or at.shape[1] != len(stored)
        or stored.shape[1:] != dense.shape[count:]
    ):
        raise ReadError(f"it is stored as sparse {how}, and its indices do not fit its values and shape")
    if at.size and ((at < 0).any() or (at.max(axis=1) >= dense.shape[:count]).any()):
        raise ReadError(f"it is stored as sparse {how}, and an index lies outside its shape")
    # A place that occurs twice holds the sum.
    np.add.at(dense, tuple(at), stored)
    return dense


def _coordinates(indices: list[NDArray[np.int64]], stored: int, *, rows_first: bool) -> NDArray[np.int64] | None:
    """(2, stored) of a compressed layout; None where its counts do not fit."""
    if len(indices) != 2 or indices[0].ndim != 1 or indices[1].ndim != 1 or not len(indices[0]):
        return None
    begins, plain = indices
    counts = np.diff(begins)
    if begins[0] != 0 or (counts < 0).any() or begins[-1] != stored or len(plain) != stored:
        return None
    compressed = np.repeat(np.arange(len(counts)), counts)
    return np.stack([compressed, plain] if rows_first else [plain, compressed])
