"""Small files for surgeries: a network that torchvision has, and one that nobody knows."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from inspector.checkpoint.types import Checkpoint
from inspector.readers import open_checkpoint


def trained(model: nn.Module, seed: int = 0) -> nn.Module:
    """Every parameter and buffer a number of its own, so that a mix-up shows."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator) * 0.05)
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point():
            buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
        elif name.endswith("num_batches_tracked"):
            buffer.fill_(7)
    return model


class Detector(nn.Module):
    """A body, a neck and two heads; no library has it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 12, 3), nn.BatchNorm2d(12))
        self.neck = nn.Linear(12, 6)
        self.classes = nn.Linear(6, 5)
        self.boxes = nn.Linear(6, 5)


def saved(content: object, path: Path) -> Checkpoint:
    """Written by torch, opened by our own reader."""
    torch.save(content, path)
    return open_checkpoint(path)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """The same names in the same order, types and bits."""
    return list(one) == list(other) and all(
        one[name].dtype is other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )
