"""The numbers of a file's smallest kernels, for checks that look at a few: their signs, whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from inspector.checkpoint.casts import numbers_of
from inspector.checkpoint.types import TensorInfo
from inspector.keys.checks.entry import Context

# Looked at: the smallest, so many bytes of them at most; of one kernel, from its beginning.
MOST_KERNELS = 8
_MOST_NBYTES = 8 << 20
_MOST_NUMEL = 1 << 16


def numbers_in(context: Context, kernels: Sequence[TensorInfo]) -> Iterator[tuple[TensorInfo, NDArray[Any]]]:
    """Each kernel with its numbers, as far as the bytes go. Raises InspectorError for what cannot be read."""
    from inspector.checkpoint.raw_tensor import read_raw

    left = _MOST_NBYTES
    for tensor in kernels:
        left -= tensor.nbytes
        if left < 0:
            return
        bits = read_raw(context.checkpoint, tensor).contiguous().array.reshape(-1)[:_MOST_NUMEL]
        yield tensor, numbers_of(bits, tensor.dtype)
