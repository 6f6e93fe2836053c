"""Requests, bytes and seconds until a checkpoint behind an address is opened, each request 50 ms late.

python -m benchmarks.bench_addresses
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable

import numpy as np
import safetensors.numpy
import torch

from inspector.readers import open_checkpoint
from tests.hub_serving import publish
from tests.serving import Handler, Server, serving

_LATE_SECONDS = 0.05


def _late(server: Server) -> None:
    for path, odd in [*((path, None) for path in server.files), *server.odd.items()]:

        def answer(handler: Handler, odd: Callable[[Handler], bool | None] | None = odd) -> bool | None:
            time.sleep(_LATE_SECONDS)
            return True if odd is None else odd(handler)

        server.odd[path] = answer


def _tensors(count: int, numel: int, start: int = 0) -> dict[str, np.ndarray]:
    names = (f"model.layers.{i}.self_attn.q_proj.weight" for i in range(start, start + count))
    return {name: np.zeros(numel, dtype=np.float32) for name in names}


def _zip(count: int, numel: int) -> bytes:
    buffer = io.BytesIO()
    torch.save({name: torch.from_numpy(array) for name, array in _tensors(count, numel).items()}, buffer)
    return buffer.getvalue()


def _sharded(shards: int, each: int, numel: int) -> dict[str, bytes]:
    names = [f"model-{i + 1:05d}-of-{shards:05d}.safetensors" for i in range(shards)]
    parts = [_tensors(each, numel, each * i) for i in range(shards)]
    index = {"weight_map": {key: name for name, part in zip(names, parts, strict=True) for key in part}}
    files = {name: safetensors.numpy.save(part) for name, part in zip(names, parts, strict=True)}
    return {**files, "model.safetensors.index.json": json.dumps(index).encode(), "config.json": b'{"a": 1}'}


def _row(says: str, server: Server, where: str, nbytes: int) -> None:
    server.log.clear()
    server.sent = 0
    began = time.perf_counter()
    tensors = len(open_checkpoint(where).tensors)
    seconds = time.perf_counter() - began
    sent = f"{len(server.log)} | {server.sent / 1e3:,.0f}"
    print(f"| {says}, {tensors:,} tensors | {nbytes / 1e6:,.0f} | {sent} | {seconds:.2f} |")


def main() -> None:
    """Print a table."""
    print("| file | MB | requests | kB | s |\n| --- | --- | --- | --- | --- |")
    with serving() as server:
        os.environ["HF_ENDPOINT"] = server.base
        server.files["/a.safetensors"] = safetensors.numpy.save(_tensors(300, 100_000))
        server.files["/b.safetensors"] = safetensors.numpy.save(_tensors(20_000, 500))
        server.files["/a.pt"] = _zip(300, 100_000)
        server.files["/b.pt"] = _zip(3_000, 10_000)
        sharded = _sharded(163, 20, 5_000)
        publish(server, "lab/large", sharded)
        _late(server)
        open_checkpoint(f"{server.base}/a.pt")  # imports
        _row("safetensors", server, f"{server.base}/a.safetensors", len(server.files["/a.safetensors"]))
        _row("safetensors", server, f"{server.base}/b.safetensors", len(server.files["/b.safetensors"]))
        _row("torch zip", server, f"{server.base}/a.pt", len(server.files["/a.pt"]))
        _row("torch zip", server, f"{server.base}/b.pt", len(server.files["/b.pt"]))
        _row("163 shards on the hub", server, "hf://lab/large", sum(map(len, sharded.values())))


if __name__ == "__main__":
    main()
