"""A state dict as safetensors: a length, a JSON header, raw bytes, nothing to execute.

The header is known before any number is, so the file is written here tensor by tensor; the library's save_file wants
all of them at once. It reads back what was written. The format has no shared memory, no strides and no `_metadata`:
tied tensors are written once each, and what is lost is said (https://huggingface.co/docs/safetensors, format section).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from inspector.checkpoint.dtypes import DTYPES
from inspector.errors import ExportError
from inspector.exports.stream import Block, Entry, Stream, Tick, dtype_name
from inspector.exports.writers.entry import Writer
from inspector.exports.writers.raw import raw_bytes

_ALIGNED = 8
TIED = "tied_tensors"


def _write(stream: Stream, path: Path, text: Mapping[str, str], tick: Tick) -> tuple[str, ...]:
    # Wide types first: then every tensor begins at a multiple of its element size.
    blocks = sorted(stream.blocks, key=lambda block: -block.dtype.itemsize)
    ties = dict(stream.ties())
    declared = {TIED: json.dumps(ties)} if ties else {}
    header = _header(blocks, {**text, **declared, "format": "pt"})
    ordered = Stream(names=stream.names, blocks=tuple(blocks))
    with path.open("wb") as file:
        file.write(header)
        for block, memory in ordered.made(tick):
            for entry in block.entries:
                file.write(raw_bytes(entry.of(memory)).data)
    lost = [f"{name} shares memory with {first}; the file holds both." for name, first in ties.items()]
    if stream.versions:
        lost.append("_metadata: versions of module classes that torch's load hooks look at.")
    return tuple(lost)


def _header(blocks: list[Block], text: Mapping[str, str]) -> bytes:
    entries: dict[str, object] = {"__metadata__": dict(text)}
    at = 0
    for block, entry in ((b, e) for b in blocks for e in b.entries):
        known = DTYPES.get(dtype_name(block.dtype))
        if known is None or not known.safetensors:
            raise ExportError(f"safetensors cannot hold this state dict: {entry.name} is {block.dtype}.")
        if entry.name == "__metadata__":
            raise ExportError('safetensors cannot hold a tensor of the name "__metadata__".')
        shape = _declared(entry, block)
        nbytes = entry.numel * block.dtype.itemsize
        entries[entry.name] = {"dtype": known.safetensors, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    try:
        made = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ExportError("safetensors cannot hold this state dict: a name is no Unicode text.") from error
    made += b" " * (-len(made) % _ALIGNED)
    return len(made).to_bytes(8, "little") + made


def _declared(entry: Entry, block: Block) -> list[int]:
    shape = list(entry.shape)
    if block.dtype is torch.float4_e2m1fn_x2 and shape:
        shape[-1] *= 2  # The format counts numbers, and torch the bytes that two of them share.
    return shape


class _Opened(Mapping[str, Tensor]):
    """The file as the library opens it: a tensor is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._file = safe_open(path, framework="pt")
        self._names: list[str] = list(self._file.keys())  # type: ignore[no-untyped-call]

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self._file.get_tensor(name)  # type: ignore[no-untyped-call]
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _read(path: Path) -> Mapping[str, Tensor]:
    try:
        return _Opened(path)
    except SafetensorError as error:
        raise ExportError(f"safetensors cannot hold this state dict: {str(error).splitlines()[0]}") from error


WRITER = Writer(
    id="safetensors",
    suffix=".safetensors",
    says="Raw bytes and a header; opens without running anything, in most libraries.",
    library="safetensors",
    write=_write,
    read=_read,
    keeps_text=True,
    shard_name="model.safetensors",
)
