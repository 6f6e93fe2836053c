"""A state dict as torch.save writes it: a zip of raw storages since torch 1.6."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.errors import ExportError
from inspector.exports.stream import Stream, Tick
from inspector.exports.writers.entry import Writer
from inspector.exports.writers.torch_pickle import pickle_of
from inspector.exports.writers.torch_zip import ALIGNMENT, new_torch_zip

if TYPE_CHECKING:
    from torch import Tensor


def _write(stream: Stream, path: Path, text: Mapping[str, str], tick: Tick) -> tuple[str, ...]:
    keys = [str(number) for number in range(len(stream.blocks))]
    data = pickle_of(stream, keys)
    with new_torch_zip(path) as archive:
        # The records of torch.save, in its order. What a file is read as here is little-endian, whatever it was.
        archive.add("data.pkl", data)
        archive.add(".format_version", b"1")
        archive.add(".storage_alignment", str(ALIGNMENT).encode())
        archive.add("byteorder", b"little")
        for key, (_, memory) in zip(keys, stream.made(tick), strict=True):
            archive.add(f"data/{key}", memory.view(np.uint8).data)
    return ()


def _read(path: Path) -> Mapping[str, RawTensor]:
    from inspector.checkpoint.torch_bridge import raw_of

    return {name: raw_of(tensor) for name, tensor in load(path, mmap=True).items()}


def load(path: Path, *, mmap: bool, device: str = "cpu") -> Mapping[str, Tensor]:
    """By torch's restricted loader. Raises ExportError when it refuses."""
    import torch

    try:
        state: Mapping[str, Tensor] = torch.load(path, map_location=device, weights_only=True, mmap=mmap)
    except (pickle.UnpicklingError, RuntimeError) as error:
        first = str(error).partition("\n")[0][:200]
        raise ExportError(f"Nothing was written: torch.load does not read it. {first}") from error
    return state


WRITER = Writer(
    id="pth",
    suffix=".pth",
    says="What torch.save writes and every version since 1.6 loads.",
    library="torch.load(weights_only=True)",
    packages=("torch",),
    write=_write,
    read=_read,
    keeps_text=False,
    shard_name="pytorch_model.bin",
)
