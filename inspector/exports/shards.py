"""A state dict over several files: shards of about one size and an index.json that says which tensor is where.

Names and index as huggingface_hub writes them (serialization/_base.py): model-00001-of-00003.safetensors and
model.safetensors.index.json, pytorch_model-00001-of-00003.bin and pytorch_model.bin.index.json. Tensors that share
memory stay in one shard.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from inspector.exports.stream import Block, Stream


def split(stream: Stream, nbytes: int) -> list[Stream]:
    """The stream in parts of at most nbytes, in its order; a block that is larger has a shard of its own."""
    shards: list[list[Block]] = [[]]
    size = 0
    for block in stream.blocks:
        own = _written(block)
        if shards[-1] and size + own > nbytes:
            shards.append([])
            size = 0
        shards[-1].append(block)
        size += own
    parts = []
    for blocks in shards:
        held = {entry.name for block in blocks for entry in block.entries}
        names = tuple(name for name in stream.names if name in held)
        parts.append(replace(stream, names=names, blocks=tuple(blocks)))
    return parts


def shard_names(name: str, count: int) -> list[str]:
    """("model.safetensors", 3) -> model-00001-of-00003.safetensors, ...; the name itself for one."""
    if count == 1:
        return [name]
    stem, _, ending = name.rpartition(".")
    return [f"{stem}-{number:05d}-of-{count:05d}.{ending}" for number in range(1, count + 1)]


def index_of(parts: Sequence[tuple[str, Stream]]) -> str:
    """The text of the index.json over these files."""
    where = {name: file for file, stream in parts for name in stream.names}
    total = sum(_written(block) for _, stream in parts for block in stream.blocks)
    made = {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _written(block: Block) -> int:
    """What the tensors of a block take where each is written by itself, as safetensors does."""
    return max(block.nbytes, sum(entry.numel for entry in block.entries) * block.itemsize)
