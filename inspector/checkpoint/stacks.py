"""Small tensors of one type and shape as the rows of one array, read side by side.

A call for each of twenty thousand tensors of a few hundred numbers costs far more than the numbers do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import is_contiguous
from inspector.checkpoint.types import Checkpoint, TensorInfo

#: Elements of the largest tensor that is stacked.
MOST = 4096
_DTYPES = frozenset({"float32", "float16", "bfloat16", "int64"})
_LITTLE = sys.byteorder == "little"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stack:
    """tensors: all of one type and shape. raw: (tensors, numel), the elements of each in row-major order; bfloat16 as
    its bits. Not to be written to."""

    tensors: tuple[TensorInfo, ...]
    raw: NDArray[np.generic]


def stack_place(checkpoint: Checkpoint, tensor: TensorInfo) -> int | None:
    """The byte of the source where the elements of a tensor begin that may be stacked: small, plain numbers, all there,
    in one run and in this machine's byte order. None for all others."""
    if tensor.dtype not in _DTYPES or tensor.encoding is not None or tensor.layout != "strided" or not _LITTLE:
        return None
    storage = checkpoint.storages.get(tensor.storage_id or "")
    if storage is None or storage.offset is None or storage.inline is not None or storage.big_endian:
        return None
    if storage.deflated_nbytes is not None or tensor.offset < 0 or not 0 < tensor.numel <= MOST:
        return None
    itemsize = DTYPES[tensor.dtype].itemsize
    end = (tensor.offset + tensor.numel) * itemsize
    if not is_contiguous(tensor) or end > min(storage.nbytes, storage.present_nbytes):
        return None
    # A step of a size of 1 is nobody's business except where it is negative, which no reader makes and all refuse.
    if tensor.stride is not None and min(tensor.stride, default=0) < 0:
        return None
    return storage.offset + tensor.offset * itemsize


def read_stacks(checkpoint: Checkpoint, tensors: Iterable[tuple[TensorInfo, int]]) -> tuple[Stack, ...]:
    """tensors: each with its `stack_place`. Raises what the source raises; no other tensor has an answer then."""
    kinds: dict[tuple[str, tuple[int, ...]], list[tuple[TensorInfo, int]]] = {}
    wanted = sorted(tensors, key=lambda each: each[1])
    ranges = [(place, tensor.numel * DTYPES[tensor.dtype].itemsize) for tensor, place in wanted]
    for number, (tensor, _) in enumerate(wanted):
        kinds.setdefault((tensor.dtype, tensor.shape), []).append((tensor, number))
    found = checkpoint.source.read_many(ranges)
    return tuple(_stack(dtype, kind, found) for (dtype, _), kind in kinds.items())


def _stack(dtype: str, kind: Sequence[tuple[TensorInfo, int]], found: Sequence[bytes]) -> Stack:
    flat = np.frombuffer(b"".join([found[number] for _, number in kind]), DTYPES[dtype].raw)
    return Stack(tensors=tuple(tensor for tensor, _ in kind), raw=flat.reshape(len(kind), -1))
