"""A state dict in the format of torch.save before 1.6, for old installations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from inspector.errors import ExportError
from inspector.exports.writers import pth
from inspector.exports.writers.entry import State, Writer

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


def _write(state: State, path: Path, text: Mapping[str, str]) -> tuple[str, ...]:
    for name, tensor in state.items():
        if tensor.dtype not in _KNOWN:
            raise ExportError(
                f"{name} is {str(tensor.dtype).removeprefix('torch.')}, which torch before 1.6 cannot load."
            )
    torch.save(state, path, _use_new_zipfile_serialization=False)
    return ()


WRITER = Writer(
    id="pth-legacy",
    suffix=".pth",
    says="What torch.save wrote before 1.6, for torch 1.5 and older.",
    write=_write,
    read=pth.read,
    keeps_text=False,
)
