"""Tensors of a checkpoint as torch tensors. The only file in this package that imports torch.

Bytes go from the file into a fresh storage; torch.load is not involved. Tensors that share a storage in the file
share one here, so tied weights stay tied.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from inspector.checkpoint.data import read_storage
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import row_major, span_of, why_unreadable
from inspector.checkpoint.types import Checkpoint, StateDict, Storage, TensorInfo
from inspector.errors import CorruptFile, LimitExceeded, ReadError

_MOST_NBYTES = 1 << 40


def to_torch(checkpoint: Checkpoint, tensor: TensorInfo) -> torch.Tensor:
    """One tensor on the CPU with the file's shape, strides and dtype; requires_grad is False.

    Raises ReadError when it has no dense bytes in the file (meta, sparse, quantised), CorruptFile when they are cut.
    """
    return _load(checkpoint, [tensor])[0]


def to_state_dict(checkpoint: Checkpoint, state: StateDict) -> dict[str, torch.Tensor]:
    """Every tensor of a state dict by its name, in the file's order. Raises as `to_torch` does."""
    tensors = _load(checkpoint, state.tensors)
    return {info.name: tensor for info, tensor in zip(state.tensors, tensors, strict=True)}


def _load(checkpoint: Checkpoint, infos: Iterable[TensorInfo]) -> list[torch.Tensor]:
    wanted = list(infos)
    spans: dict[str, tuple[int, int]] = {}
    for info in wanted:
        reason = why_unreadable(info)
        if not reason and info.dtype.startswith(("qint", "quint")):
            reason = "it is quantised"
        if reason or info.storage_id is None:
            raise ReadError(f"{info.name} cannot be loaded as a dense tensor: {reason}.")
        itemsize = DTYPES[info.dtype].itemsize
        first, end = span_of(info)
        low, high = spans.get(info.storage_id, (first * itemsize, end * itemsize))
        spans[info.storage_id] = (min(low, first * itemsize), max(high, end * itemsize))
    # A saved slice of a large storage is read alone; the start is kept on 16 bytes, a multiple of every itemsize.
    blocks = {key: _read(checkpoint, key, low - low % 16, high) for key, (low, high) in spans.items()}
    made: list[torch.Tensor] = []
    for info in wanted:
        key = info.storage_id or ""
        itemsize = DTYPES[info.dtype].itemsize
        start = spans[key][0] - spans[key][0] % 16
        empty = torch.empty(0, dtype=getattr(torch, info.dtype))
        stride = info.stride if info.stride is not None else row_major(info.shape)
        made.append(empty.set_(blocks[key], info.offset - start // itemsize, info.shape, stride))
    return made


def _read(checkpoint: Checkpoint, key: str, start: int, end: int) -> torch.UntypedStorage:
    storage = checkpoint.storages.get(key)
    if storage is None:
        raise CorruptFile(f"{checkpoint.origin.name} lacks storage {key}.")
    if end > storage.nbytes:
        raise CorruptFile(f"A tensor needs {end:,} bytes of storage {key}, which has {storage.nbytes:,}.")
    if end - start > _MOST_NBYTES:
        raise LimitExceeded(f"Storage {key} would take {end - start:,} bytes.")
    if end == start:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    raw = bytearray(read_storage(checkpoint, storage, start, end - start))
    if storage.big_endian:
        _swap(raw, checkpoint, storage)
    return torch.frombuffer(raw, dtype=torch.uint8).untyped_storage()


def _swap(raw: bytearray, checkpoint: Checkpoint, storage: Storage) -> None:
    """Turn big-endian elements over in place; all tensors of one storage have one element size."""
    names = {t.dtype for t in checkpoint.tensors if t.storage_id == storage.id}
    sizes = {DTYPES[n].itemsize // (2 if n.startswith("complex") else 1) for n in names}
    if len(sizes) != 1:
        raise ReadError(f"Storage {storage.id} is big-endian and has elements of several sizes.")
    size = sizes.pop()
    if size > 1:
        numbers = np.frombuffer(raw, dtype=f"u{size}", count=len(raw) // size)
        numbers.byteswap(inplace=True)
