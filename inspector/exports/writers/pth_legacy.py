"""A state dict in the format of torch.save before 1.6, for old installations.

Five pickles and then the storages: a magic number, the protocol's version, the machine, the state dict, the keys of the
storages in their order; each storage is its number of elements and their bytes (torch/serialization.py, _legacy_save).
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inspector.checkpoint.raw_tensor import RawTensor
from inspector.errors import ExportError
from inspector.exports.stream import Stream, Tick
from inspector.exports.writers import pth
from inspector.exports.writers.entry import Writer
from inspector.exports.writers.torch_pickle import PROTOCOL, pickle_of

if TYPE_CHECKING:
    from torch import Tensor

# What torch 1.5 has; a file with others would be written here and not load there.
_KNOWN = frozenset(
    ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"),
)
# torch/serialization.py, MAGIC_NUMBER and PROTOCOL_VERSION.
_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def _write(stream: Stream, path: Path, text: Mapping[str, str], tick: Tick) -> tuple[str, ...]:
    for block in stream.blocks:
        if block.dtype not in _KNOWN:
            raise ExportError(f"{block.entries[0].name} is {block.dtype}, which torch before 1.6 cannot load.")
    # torch sorts the keys as text; these are in order then.
    keys = [f"{number:010d}" for number in range(len(stream.blocks))]
    with path.open("wb") as file:
        for header in (_MAGIC, _VERSION, _SYSTEM):
            pickle.dump(header, file, protocol=PROTOCOL)
        file.write(pickle_of(stream, keys, None))
        pickle.dump(keys, file, protocol=PROTOCOL)
        for block, memory in stream.made(tick):
            file.write(block.numel.to_bytes(8, "little"))
            file.write(memory.view(np.uint8).data)
    return ()


def _read(path: Path) -> Mapping[str, RawTensor]:
    return _raw(pth.load(path, mmap=False))


def _read_bare(path: Path) -> Mapping[str, RawTensor]:
    return _raw(pth.load(path, mmap=False, device="meta"))


def _raw(state: Mapping[str, Tensor]) -> Mapping[str, RawTensor]:
    from inspector.checkpoint.torch_bridge import raw_of

    return {name: raw_of(tensor) for name, tensor in state.items()}


WRITER = Writer(
    id="pth-legacy",
    suffix=".pth",
    says="What torch.save wrote before 1.6, for torch 1.5 and older.",
    library="torch.load(weights_only=True)",
    packages=("torch",),
    write=_write,
    read=_read,
    keeps_text=False,
    shard_name="pytorch_model.bin",
    read_bare=_read_bare,
)
