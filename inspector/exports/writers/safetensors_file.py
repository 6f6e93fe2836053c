"""A state dict as safetensors: a JSON header and raw bytes, nothing to execute.

The format has no shared memory, no strides and no `_metadata`: tied tensors are written once each, and what is lost is
said (https://huggingface.co/docs/safetensors, format section).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from inspector.errors import ExportError
from inspector.exports.writers.entry import State, Writer


def _write(state: State, path: Path, text: Mapping[str, str]) -> tuple[str, ...]:
    lost = []
    seen: dict[int, str] = {}
    plain: dict[str, torch.Tensor] = {}
    for name, tensor in state.items():
        first = seen.setdefault(tensor.untyped_storage().data_ptr(), name) if tensor.numel() else name
        if first != name:
            lost.append(f"{name} shares memory with {first}; the file holds both.")
            tensor = tensor.clone()
        plain[name] = tensor.contiguous()
    if getattr(state, "_metadata", None):
        lost.append("_metadata: versions of module classes that torch's load hooks look at.")
    try:
        save_file(plain, path, metadata={**text, "format": "pt"})
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        if "I/O error" in str(error):
            raise OSError(str(error).rpartition("I/O error: ")[2].rstrip(".")) from error
        raise ExportError(f"safetensors cannot hold this state dict: {str(error).splitlines()[0]}") from error
    return tuple(lost)


def _read(path: Path) -> State:
    state: State = load_file(path)
    return state


WRITER = Writer(
    id="safetensors",
    suffix=".safetensors",
    says="Raw bytes and a header; opens without running anything, in most libraries.",
    write=_write,
    read=_read,
    keeps_text=True,
)
