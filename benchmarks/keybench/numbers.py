"""Numbers for every tensor of a network, other ones in each, and a checkpoint that holds them.

All tensors are views of one long row of noise, each from another place on: no two have the same numbers, and nothing
is copied, however large the network.
"""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from benchmarks.keybench.architectures import Architecture
from benchmarks.keybench.files import checkpoint_of
from inspector.checkpoint.source import check_range
from inspector.checkpoint.types import Checkpoint, Storage, TensorInfo

# Between the beginnings of two tensors in the noise.
STEP = 17


def fingerprints(architecture: Architecture, seed: int, own: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """A state dict whose tensors all differ. own: a built model's, whose index tables are kept as they are.

    Kernels lie around zero, so that answers stay finite; what has one dimension lies above it, as variances must.
    """
    chance = torch.Generator().manual_seed(zlib.crc32(f"{architecture.name} {seed}".encode()))
    tensors = architecture.tensors
    sizes = [int(np.prod(tensor.shape or (), dtype=np.int64)) for tensor in tensors]
    noise = torch.empty(max(sizes) + STEP * len(sizes)).uniform_(-0.05, 0.05, generator=chance)
    rows = [size for tensor, size in zip(tensors, sizes, strict=True) if len(tensor.shape or ()) < 2]
    above = torch.empty(max(rows, default=0) + STEP * len(sizes)).uniform_(0.1, 0.9, generator=chance)
    made = {}
    for number, (tensor, size) in enumerate(zip(tensors, sizes, strict=True)):
        shape = tensor.shape or ()
        if tensor.dtype == "float32":
            row = noise if len(shape) > 1 else above
            made[tensor.name] = row[STEP * number : STEP * number + size].view(shape)
        elif tensor.name.endswith("num_batches_tracked"):
            made[tensor.name] = torch.randint(1, 2**40, shape, generator=chance)
        elif own is not None:
            made[tensor.name] = own[tensor.name].clone()
        else:
            dtype = getattr(torch, tensor.dtype or "int64")
            made[tensor.name] = torch.randint(0, 2, shape, generator=chance).to(dtype)
    return made


class Memory:
    """The bytes of several arrays behind each other, as if they were one file."""

    def __init__(self, arrays: Iterable[np.ndarray]) -> None:
        self.name = "case.pth"
        self._views = [array.reshape(-1).view(np.uint8).data.cast("B") for array in arrays]
        self.starts = [0]
        for view in self._views:
            self.starts.append(self.starts[-1] + len(view))
        self.size = self.starts[-1]

    def read(self, offset: int, n: int) -> bytes:
        check_range(self.name, self.size, offset, n)
        if not n:
            return b""
        # A storage is one array: nothing reads across two of them.
        i = bisect.bisect_right(self.starts, offset) - 1
        start = offset - self.starts[i]
        return bytes(self._views[i][start : start + n])

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        return [self.read(offset, n) for offset, n in ranges]

    def close(self) -> None:
        return None


def checkpoint_with(state: Mapping[str, Tensor]) -> Checkpoint:
    """A checkpoint of these tensors with their numbers; tensors that are one object share a storage."""
    one = {id(tensor): tensor for tensor in state.values()}
    arrays = {key: tensor.contiguous().numpy() for key, tensor in one.items()}
    memory = Memory(arrays.values())
    storages = {
        str(key): Storage(id=str(key), nbytes=array.nbytes, present_nbytes=array.nbytes, offset=start)
        for (key, array), start in zip(arrays.items(), memory.starts, strict=False)
    }
    infos = tuple(
        TensorInfo(
            name=name,
            path=(name,),
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            nbytes=tensor.numel() * tensor.element_size(),
            storage_id=str(id(tensor)),
        )
        for name, tensor in state.items()
    )
    return checkpoint_of({}, tensors=infos, storages=storages, source=memory)
