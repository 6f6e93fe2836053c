"""A state dict in the format of torch.save before 1.6, for old installations.

Five pickles and then the storages: a magic number, the protocol's version, the machine, the state dict, the keys of the
storages in their order; each storage is its number of elements and their bytes (torch/serialization.py, _legacy_save).
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, serialization

from inspector.errors import ExportError
from inspector.exports.stream import Stream, Tick
from inspector.exports.writers import pth
from inspector.exports.writers.entry import Writer
from inspector.exports.writers.raw import raw_bytes
from inspector.exports.writers.torch_pickle import PROTOCOL, pickle_of

# What torch 1.5 has; a file with others would be written here and not load there.
_KNOWN = frozenset(
    {
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    }
)
_SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def _write(stream: Stream, path: Path, text: Mapping[str, str], tick: Tick) -> tuple[str, ...]:
    for block in stream.blocks:
        if block.dtype not in _KNOWN:
            kind = str(block.dtype).removeprefix("torch.")
            raise ExportError(f"{block.entries[0].name} is {kind}, which torch before 1.6 cannot load.")
    # torch sorts the keys as text; these are in order then.
    keys = [f"{number:010d}" for number in range(len(stream.blocks))]
    with path.open("wb") as file:
        for header in (serialization.MAGIC_NUMBER, serialization.PROTOCOL_VERSION, _SYSTEM):
            pickle.dump(header, file, protocol=PROTOCOL)
        file.write(pickle_of(stream, keys, None))
        pickle.dump(keys, file, protocol=PROTOCOL)
        for block, memory in stream.made(tick):
            file.write(block.numel.to_bytes(8, "little"))
            file.write(raw_bytes(memory).data)
    return ()


def _read(path: Path) -> Mapping[str, Tensor]:
    return pth.load(path, mmap=False)


WRITER = Writer(
    id="pth-legacy",
    suffix=".pth",
    says="What torch.save wrote before 1.6, for torch 1.5 and older.",
    library="torch.load(weights_only=True)",
    write=_write,
    read=_read,
    keeps_text=False,
    shard_name="pytorch_model.bin",
    reads_whole=True,
)
