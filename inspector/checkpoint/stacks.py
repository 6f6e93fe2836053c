"""Small tensors of one type and shape as the rows of one array, read side by side.

A call for each of twenty thousand tensors of a few hundred numbers costs far more than the numbers do.
"""

from __future__ import annotations

import math
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
    """tensors: all of one type and shape. given: their places among those that were asked for. raw: (tensors, numel),
    the elements of each in row-major order; bfloat16 as its bits. Not to be written to."""

    tensors: tuple[TensorInfo, ...]
    given: tuple[int, ...]
    raw: NDArray[np.generic]


def stack_places(checkpoint: Checkpoint, tensors: Iterable[TensorInfo]) -> list[int | None]:
    """Of each the byte of the source where its elements begin, if it may be stacked: small, plain numbers, all there,
    in one run and in this machine's byte order. None for all others."""
    # Twenty thousand tensors are of a few shapes: (bytes of an element, of all of them) by what does not differ.
    spans: dict[tuple[object, ...], tuple[int, int] | None] = {}
    storages = checkpoint.storages
    found: list[int | None] = []
    for tensor in tensors:
        kind = (tensor.dtype, tensor.shape, tensor.stride, tensor.layout, tensor.encoding is None)
        span = spans[kind] if kind in spans else spans.setdefault(kind, _span(tensor))
        storage = storages.get(tensor.storage_id or "") if span is not None else None
        if span is None or storage is None or storage.offset is None or tensor.offset < 0:
            found.append(None)
            continue
        begin = tensor.offset * span[0]
        plain = storage.inline is None and not storage.big_endian and storage.deflated_nbytes is None
        there = begin + span[1] <= min(storage.nbytes, storage.present_nbytes)
        found.append(storage.offset + begin if plain and there else None)
    return found


def _span(tensor: TensorInfo) -> tuple[int, int] | None:
    if tensor.dtype not in _DTYPES or tensor.encoding is not None or tensor.layout != "strided" or not _LITTLE:
        return None
    # A step of a size of 1 is nobody's business except where it is negative, which no reader makes and all refuse.
    if not 0 < tensor.numel <= MOST or min(tensor.stride or (), default=0) < 0 or not is_contiguous(tensor):
        return None
    itemsize = DTYPES[tensor.dtype].itemsize
    return itemsize, tensor.numel * itemsize


def read_stacks(checkpoint: Checkpoint, tensors: Sequence[tuple[TensorInfo, int]]) -> tuple[Stack, ...]:
    """tensors: each with its place (`stack_places`). Raises what the source raises; no other tensor has an answer
    then."""
    order = sorted(range(len(tensors)), key=lambda given: tensors[given][1])
    kinds: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, given in enumerate(order):
        tensor, _ = tensors[given]
        kinds.setdefault((tensor.dtype, tensor.shape), []).append(number)
    nbytes = {kind: DTYPES[kind[0]].itemsize * math.prod(kind[1]) for kind in kinds}
    ranges = [(place, nbytes[tensor.dtype, tensor.shape]) for tensor, place in (tensors[given] for given in order)]
    found = checkpoint.source.read_many(ranges)
    return tuple(
        Stack(
            tensors=tuple(tensors[order[number]][0] for number in numbers),
            given=tuple(order[number] for number in numbers),
            raw=np.frombuffer(b"".join([found[number] for number in numbers]), DTYPES[dtype].raw).reshape(
                len(numbers), -1
            ),
        )
        for (dtype, _), numbers in kinds.items()
    )
