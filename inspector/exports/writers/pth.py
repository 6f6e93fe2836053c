"""A state dict as torch.save writes it: a zip of raw storages since torch 1.6."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from inspector.exports.writers.entry import State, Writer


def _write(state: State, path: Path, text: Mapping[str, str]) -> tuple[str, ...]:
    # The mapping itself is saved and not a copy: torch keeps `_metadata` as its attribute.
    torch.save(state, path)
    return ()


def read(path: Path) -> State:
    """What was just written, by torch's restricted loader."""
    state: State = torch.load(path, map_location="cpu", weights_only=True)
    return state


WRITER = Writer(
    id="pth",
    suffix=".pth",
    says="What torch.save writes and every version since 1.6 loads.",
    write=_write,
    read=read,
    keeps_text=False,
)
