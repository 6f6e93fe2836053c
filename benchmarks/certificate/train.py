"""Trains the networks on drawn shapes, each for a stated processor time, and keeps them outside the repository."""

from __future__ import annotations

import math
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmarks.certificate.networks import NETWORKS
from sample_models.shapes import generate

SIDE, BATCH, RATE = 24, 24, 3e-3


@cache
def pictures(seed: int, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Drawn shapes (n, 3, 24, 24) about zero; class, colour and place of each object (n, 6); masks (n, 1, 24, 24)."""
    drawn, labels, masks = generate(seed, n, SIDE)
    floats = torch.from_numpy(drawn.astype(np.float32) / 255).permute(0, 3, 1, 2)
    outlines = torch.from_numpy(masks).float()[:, None]
    area = outlines.sum((2, 3))
    colour = (floats * outlines).sum((2, 3)) / area
    steps = torch.linspace(-1, 1, SIDE)
    across, down = (outlines * steps).sum((2, 3)) / area, (outlines * steps[:, None]).sum((2, 3)) / area
    facts = torch.cat([torch.from_numpy(labels).float()[:, None], colour * 4 - 2, across * 2, down * 2], 1)
    return (floats - 0.45) / 0.25, facts, outlines


def loss_of(answer: Tensor, facts: Tensor, outlines: Tensor) -> Tensor:
    """Of masks, or of class, colour and place together."""
    if answer.dim() == 4:
        return nn.functional.binary_cross_entropy_with_logits(answer, outlines)
    classes = nn.functional.cross_entropy(answer[:, :4], facts[:, 0].long())
    return classes + nn.functional.mse_loss(answer[:, 4:], facts[:, 1:])


def train(name: str, folder: Path, *, seconds: float = 20.0, n: int = 1600) -> tuple[float, float, int]:
    """Train one and write it there. Returns the loss before and after, on pictures not trained on, and the steps."""
    torch.manual_seed(sum(name.encode()))
    torch.set_num_threads(1)
    model = NETWORKS[name]()
    inputs, facts, outlines = pictures(1, n)
    # Norms move as far in a minute as they do in an hour's training elsewhere (deviation of the weights 0.1 to 0.3).
    norms = [p for m in model.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()]
    others = [p for p in model.parameters() if all(p is not norm for norm in norms)]
    groups = [
        {"params": others, "rate": RATE, "weight_decay": 0.02},
        {"params": norms, "rate": 6 * RATE, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    start = time.process_time()
    step, share, first = 0, 0.0, float("nan")
    model.train()
    while share < 1:
        # By time, not by epochs: the rate falls to zero as the time is used up.
        share = min(1.0, (time.process_time() - start) / seconds)
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * (0.02 + 0.98 * (1 + math.cos(math.pi * share)) / 2)
        rows = torch.randint(n, (BATCH,))
        loss = loss_of(model(inputs[rows]), facts[rows], outlines[rows])
        first = float(loss.detach()) if step == 0 else first
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    model.eval()
    held, classes, masks = pictures(2, 300)
    with torch.inference_mode():
        last = float(loss_of(model(held), classes, masks))
    save_file(model.state_dict(), folder / f"{name}.safetensors")
    return first, last, step


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        if not (target / f"{name}.safetensors").exists():
            first, last, steps = train(name, target)
            print(f"{name:24} loss {first:.3f} to {last:.3f} in {steps} steps", flush=True)
