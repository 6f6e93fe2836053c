"""A training run without training: the sample network on its way from random weights to its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torchvision.models import get_model

SAMPLE = Path(__file__).resolve().parents[1] / "sample_models" / "files" / "shapes.safetensors"
FACTS: dict[str, Any] = {
    "classes": ["circle", "square", "triangle", "star"],
    "preprocessing": {"size": 192, "mean": [0.5] * 3, "std": [0.25] * 3},
}


def weights_at(share: float) -> dict[str, torch.Tensor]:
    """Random weights (seed 0) at 0, the sample's own at 1, between them on a straight line."""
    torch.manual_seed(0)
    start = get_model("shufflenet_v2_x0_5", weights=None, num_classes=4).state_dict()
    end = load_file(SAMPLE)
    return {
        name: torch.lerp(start[name], end[name], share) if start[name].is_floating_point() else end[name]
        for name in start
    }


def save_run(folder: Path, shares: Sequence[float], *, facts: dict[str, Any] = FACTS) -> list[Path]:
    """epoch_1.pth, epoch_2.pth ... as a training loop saves them, 40 steps to an epoch."""
    made = []
    for epoch, share in enumerate(shares, start=1):
        path = folder / f"epoch_{epoch}.pth"
        torch.save({"state_dict": weights_at(share), "epoch": epoch, "global_step": 40 * epoch, **facts}, path)
        made.append(path)
    return made
