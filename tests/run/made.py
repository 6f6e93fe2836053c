"""Small runs as training loops save them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from inspector.readers import open_checkpoint
from inspector.run.files import RunFile

State = dict[str, torch.Tensor]


def states(count: int, *, seed: int = 0, step: float = 0.01) -> list[State]:
    """Weights of a small network with a batch norm, each a step of noise from the one before."""
    noise = torch.Generator().manual_seed(seed)
    shapes = {
        "conv.weight": (8, 3, 3, 3),
        "bn.weight": (8,),
        "bn.bias": (8,),
        "bn.running_mean": (8,),
        "bn.running_var": (8,),
        "fc.weight": (4, 8),
        "fc.bias": (4,),
    }
    now = {name: torch.randn(shape, generator=noise) for name, shape in shapes.items()}
    found = [now]
    for _ in range(count - 1):
        now = {name: value + step * torch.randn(value.shape, generator=noise) for name, value in now.items()}
        found.append(now)
    return found


def save(folder: Path, name: str, state: Mapping[str, torch.Tensor], **stated: Any) -> RunFile:
    """As `torch.save({"state_dict": ..., "epoch": ...})`."""
    torch.save({"state_dict": dict(state), **stated}, folder / name)
    return RunFile(name=name, opening=lambda: open_checkpoint(folder / name))


def save_all(folder: Path, of: list[State]) -> list[RunFile]:
    """epoch_1.pth, epoch_2.pth ..., with their epochs."""
    return [save(folder, f"epoch_{n}.pth", state, epoch=n) for n, state in enumerate(of, start=1)]
