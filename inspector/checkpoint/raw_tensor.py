"""A tensor as its bits in numpy and the name of its type: what is moved, compared and written needs no more.

numpy has no bfloat16 and no 8-bit floats; they are held as whole numbers of their size (`DType.raw`). Renaming,
joining, turning and casting tensors is done on these, with torch and without it, so that both write the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from inspector.checkpoint.casts import cast, common_type, numbers_of
from inspector.checkpoint.data import read_array
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major, why_unreadable
from inspector.checkpoint.types import Checkpoint, Shape, TensorInfo
from inspector.errors import ReadError


class NoNumbers(Exception):
    """What was asked of a bare tensor takes numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class RawTensor:
    """dtype: torch's name. array: its bits, any strides.

    shows: the name of the file's tensor whose memory this is or shows a part of, "" for memory of its own.
    bare: shape and strides alone, without numbers; what would move numbers gives bare memory of its own.
    """

    dtype: str
    array: NDArray[np.generic]
    shows: str = ""
    bare: bool = False

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        return self.array.size

    @property
    def stride(self) -> tuple[int, ...]:
        """In elements."""
        return tuple(step // self.array.itemsize for step in self.array.strides)

    @property
    def address(self) -> int:
        """Of the first element, in bytes: two views of one memory differ by where they begin in it."""
        return int(self.array.__array_interface__["data"][0])

    @property
    def raw_bytes(self) -> NDArray[np.uint8]:
        """Row-major bytes; a copy only where the elements do not lie in that order."""
        self._check_held()
        if not self.numel:
            return np.empty(0, np.uint8)
        return np.ascontiguousarray(self.array).reshape(-1).view(np.uint8)

    @property
    def numbers(self) -> NDArray[np.generic]:
        """As numpy counts with them, exactly. Raises ReadError for types without one number per element."""
        self._check_held()
        return numbers_of(self.array, self.dtype)

    def with_numbers(self, held: NDArray[np.generic]) -> RawTensor:
        """Computed numbers, as numpy has them, in this tensor's type."""
        return computed_tensor(held).cast(self.dtype)

    def cast(self, dtype: str) -> RawTensor:
        """The same numbers in another type; itself where it has that."""
        if dtype == self.dtype:
            return self
        self._check_held()
        return RawTensor(dtype, cast(self.array, self.dtype, dtype))

    def permute(self, axes: Sequence[int]) -> RawTensor:
        """A view with the axes in this order."""
        return replace(self, array=self.array.transpose(axes))

    def rows(self, first: int, last: int) -> RawTensor:
        """A view of these along the first axis."""
        return replace(self, array=self.array[first:last])

    def take(self, rows: Sequence[int]) -> RawTensor:
        """A copy of these along the first axis, in this order."""
        if self.bare:
            return self._own((len(rows), *self.shape[1:]))
        return RawTensor(self.dtype, self.array[list(rows)])

    def columns(self, first: int, last: int) -> RawTensor:
        """A view of these along the second axis."""
        return replace(self, array=self.array[:, first:last])

    def reshape(self, shape: Sequence[int]) -> RawTensor:
        """The same elements in the same order; a view where they lie in that order already. One size may be -1."""
        if self.array.flags.c_contiguous:
            return replace(self, array=self.array.reshape(shape))
        return self._own(_whole(shape, self.numel)) if self.bare else self.contiguous().reshape(shape)

    def contiguous(self) -> RawTensor:
        """Itself where its elements lie in row-major order, else a copy that has them so."""
        return self if self.array.flags.c_contiguous else self.copy()

    def copy(self) -> RawTensor:
        """Memory of its own, in row-major order."""
        return self._own(self.shape) if self.bare else RawTensor(self.dtype, self.array.copy(order="C"))

    def flip(self, axes: Sequence[int]) -> RawTensor:
        """A copy with these axes the other way round."""
        return self.copy() if self.bare else RawTensor(self.dtype, np.flip(self.array, tuple(axes)).copy(order="C"))

    def _own(self, shape: Shape) -> RawTensor:
        return bare_tensor(self.dtype, shape)

    def _check_held(self) -> None:
        if self.bare:
            raise NoNumbers


def _whole(shape: Sequence[int], numel: int) -> Shape:
    known = math.prod(size for size in shape if size >= 0)
    return tuple(size if size >= 0 else numel // max(1, known) for size in shape)


def bare_tensor(dtype: str, shape: Shape, stride: tuple[int, ...] | None = None, *, shows: str = "") -> RawTensor:
    """Shape and strides in elements, without any memory: it must not be read. Raises ReadError for impossible sizes."""
    itemsize = DTYPES[dtype].itemsize
    steps = tuple(step * itemsize for step in (row_major(shape) if stride is None else stride))
    try:
        array = as_strided(np.empty(1, DTYPES[dtype].raw), shape, steps, writeable=False)
    except ValueError as error:
        raise ReadError(f"{shows or 'A tensor'} has sizes that no array can have.") from error
    return RawTensor(dtype, array, shows=shows, bare=True)


def computed_tensor(held: NDArray[np.generic]) -> RawTensor:
    """An array of one of numpy's own types."""
    return RawTensor(held.dtype.name, held)


def zeros_like(tensor: RawTensor) -> RawTensor:
    """Positive zeros, which have no bit set in any type that torch computes with."""
    if tensor.bare:
        return bare_tensor(tensor.dtype, tensor.shape)
    return RawTensor(tensor.dtype, np.zeros(tensor.shape, tensor.array.dtype))


def check_dense(tensor: TensorInfo) -> None:
    """Raise ReadError for a tensor that is not simply its numbers (sparse, quantised, without data)."""
    reason = why_unreadable(tensor)
    if not reason and tensor.dtype.startswith(("qint", "quint")):
        reason = "it is quantised"
    if reason or tensor.storage_id is None:
        raise ReadError(f"{tensor.name} cannot be loaded as a dense tensor: {reason}.")


def read_raw(checkpoint: Checkpoint, tensor: TensorInfo) -> RawTensor:
    """One tensor in row-major order, little-endian.

    Raises ReadError when it has no dense bytes in the file, CorruptFile when they are cut, LimitExceeded for an
    expanded view far larger than its storage. Conjugated and negated views come as the values that they show.
    """
    check_dense(tensor)
    return RawTensor(tensor.dtype, read_array(checkpoint, tensor), shows=tensor.name)


def join(parts: Sequence[RawTensor], axis: int = 0) -> RawTensor:
    """Below or beside each other, as torch.cat joins them: in the widest of their types.

    Raises ReadError where types or shapes do not go together.
    """
    dtype = common_type(tuple(part.dtype for part in parts))
    shapes = [part.shape for part in parts]
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) != 1:
        raise ReadError(f"Tensors of the shapes {shapes[0]} and {shapes[1]} cannot be joined.")
    if any(part.bare for part in parts):
        size = sum(shape[axis] for shape in shapes)
        return bare_tensor(dtype, (*shapes[0][:axis], size, *shapes[0][axis + 1 :]))
    return RawTensor(dtype, np.concatenate([part.cast(dtype).array for part in parts], axis))


def same_bits(one: RawTensor, other: RawTensor) -> bool:
    """Equal type, shape and bytes: NaN and negative zero included."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return np.array_equal(one.raw_bytes, other.raw_bytes)
