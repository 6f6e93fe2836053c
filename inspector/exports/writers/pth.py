"""A state dict as torch.save writes it: a zip of raw storages since torch 1.6."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, serialization

from inspector.errors import ExportError
from inspector.exports.stream import Stream, Tick
from inspector.exports.writers.entry import Writer
from inspector.exports.writers.torch_pickle import pickle_of


def _write(stream: Stream, path: Path, text: Mapping[str, str], tick: Tick) -> tuple[str, ...]:
    keys = [str(number) for number in range(len(stream.blocks))]
    data = pickle_of(stream, keys)
    alignment = str(serialization._get_storage_alignment())
    with serialization._open_zipfile_writer(str(path)) as archive:
        # The records of torch.save, in its order.
        archive.write_record("data.pkl", data, len(data))
        archive.write_record(".format_version", "1", 1)
        archive.write_record(".storage_alignment", alignment, len(alignment))
        archive.write_record("byteorder", sys.byteorder, len(sys.byteorder))
        for key, (block, memory) in zip(keys, stream.made(tick), strict=True):
            archive.write_record(f"data/{key}", _storage_of(memory), block.nbytes)
    return ()


def _storage_of(memory: Tensor) -> torch.UntypedStorage:
    """Just the bytes of a contiguous tensor, which may be cut out of a longer storage."""
    start = memory.storage_offset() * memory.itemsize
    storage: torch.UntypedStorage = memory.untyped_storage()
    nbytes = memory.numel() * memory.itemsize
    return storage if start == 0 and storage.nbytes() == nbytes else storage[start : start + nbytes]


def _read(path: Path) -> Mapping[str, Tensor]:
    return load(path, mmap=True)


def load(path: Path, *, mmap: bool, device: str = "cpu") -> Mapping[str, Tensor]:
    """By torch's restricted loader. Raises ExportError when it refuses."""
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
    write=_write,
    read=_read,
    keeps_text=False,
    shard_name="pytorch_model.bin",
)
