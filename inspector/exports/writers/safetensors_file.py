"""A state dict as safetensors: a length, a JSON header, raw bytes, nothing to execute.

The header is known before any number is, so the file is written here tensor by tensor; the library's save_file wants
all of them at once. It reads back what was written. The format has no shared memory, no strides and no `_metadata`:
tied tensors are written once each, and what is lost is said (https://huggingface.co/docs/safetensors, format section).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.errors import ExportError
from inspector.exports.stream import Block, Entry, Stream, Tick
from inspector.exports.writers.entry import Writer

_ALIGNED = 8
TIED = "tied_tensors"


def _write(stream: Stream, path: Path, text: Mapping[str, str], tick: Tick) -> tuple[str, ...]:
    # Wide types first: then every tensor begins at a multiple of its element size.
    blocks = sorted(stream.blocks, key=lambda block: -block.itemsize)
    ties = dict(stream.ties())
    declared = {TIED: json.dumps(ties)} if ties else {}
    header = _header(blocks, {**text, **declared, "format": "pt"})
    ordered = Stream(names=stream.names, blocks=tuple(blocks))
    with path.open("wb") as file:
        file.write(header)
        for block, memory in ordered.made(tick):
            for entry in block.entries:
                file.write(entry.of(memory, block.dtype).raw_bytes.data)
    lost = [f"{name} shares memory with {first}; the file holds both." for name, first in ties.items()]
    if stream.versions:
        lost.append("_metadata: versions of module classes that torch's load hooks look at.")
    return tuple(lost)


def _header(blocks: list[Block], text: Mapping[str, str]) -> bytes:
    entries: dict[str, object] = {"__metadata__": dict(text)}
    at = 0
    for block, entry in ((b, e) for b in blocks for e in b.entries):
        code = DTYPES[block.dtype].safetensors
        if not code:
            raise ExportError(f"safetensors cannot hold this state dict: {entry.name} is torch.{block.dtype}.")
        if entry.name == "__metadata__":
            raise ExportError('safetensors cannot hold a tensor of the name "__metadata__".')
        shape = _declared(entry, block)
        nbytes = entry.numel * block.itemsize
        entries[entry.name] = {"dtype": code, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    try:
        made = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ExportError("safetensors cannot hold this state dict: a name is no Unicode text.") from error
    made += b" " * (-len(made) % _ALIGNED)
    return len(made).to_bytes(8, "little") + made


def _declared(entry: Entry, block: Block) -> list[int]:
    shape = list(entry.shape)
    if block.dtype == "float4_e2m1fn_x2" and shape:
        shape[-1] *= 2  # The format counts numbers, and torch the bytes that two of them share.
    return shape


class _Opened(Mapping[str, RawTensor]):
    """The file as the library opens it: a tensor is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        from safetensors import safe_open

        self._file = safe_open(path, framework="pt")
        self._names: list[str] = list(self._file.keys())  # type: ignore[no-untyped-call]

    def __getitem__(self, name: str) -> RawTensor:
        from inspector.checkpoint.torch_bridge import raw_of

        return raw_of(self._file.get_tensor(name))  # type: ignore[no-untyped-call]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _read(path: Path) -> Mapping[str, RawTensor]:
    from safetensors import SafetensorError

    try:
        return _Opened(path)
    except SafetensorError as error:
        raise ExportError(f"safetensors cannot hold this state dict: {str(error).splitlines()[0]}") from error


WRITER = Writer(
    id="safetensors",
    suffix=".safetensors",
    says="Raw bytes and a header; opens without running anything, in most libraries.",
    library="safetensors",
    packages=("safetensors", "torch"),
    write=_write,
    read=_read,
    keeps_text=True,
    shard_name="model.safetensors",
)
