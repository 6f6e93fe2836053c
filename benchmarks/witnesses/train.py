"""Trains the networks, each for a stated processor time: text is this repository's own, pictures are drawn shapes.

    python -m benchmarks.witnesses.train FOLDER [NAME ...]

Each is kept before its training, too (NAME.initial.safetensors): of that nothing may be said.
"""

from __future__ import annotations

import math
import sys
import time
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.certificate.train import loss_of, pictures
from benchmarks.witnesses.networks import NETWORKS, Pile, Shape, Transformer, pile

PLACES, BATCH, SYMBOLS = 48, 24, 96
ROOT = Path(__file__).resolve().parents[2]


@cache
def text() -> Tensor:
    """The package and its pages as numbers of printable characters."""
    files = sorted([*ROOT.glob("inspector/**/*.py"), *ROOT.glob("docs/*.md")])
    raw = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return torch.tensor([min(95, ord(c) - 32) if ord(c) >= 32 else 95 for c in raw])


def new_network(name: str) -> nn.Module:
    """As its own seed makes it, untrained."""
    torch.manual_seed(sum(name.encode()))
    shape = NETWORKS[name]
    return pile(shape) if isinstance(shape, Pile) else Transformer(shape, SYMBOLS, PLACES)


def _loss(model: nn.Module, shape: Shape | Pile) -> Tensor:
    if isinstance(shape, Pile) or shape.patch:
        inputs, facts, outlines = pictures(1, 1600)
        rows = torch.randint(len(inputs), (BATCH,))
        return loss_of(model(inputs[rows]), facts[rows], outlines[rows])
    all_of_it = text()
    starts = torch.randint(len(all_of_it) - PLACES - 1, (BATCH,))
    rows = all_of_it[starts[:, None] + torch.arange(PLACES + 1)]
    return functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def train(name: str, folder: Path, *, seconds: float) -> tuple[float, float, int]:
    """Train one and write it there. Returns the loss at the beginning and at the end, and the steps."""
    torch.set_num_threads(1)
    model, shape = new_network(name), NETWORKS[name]
    save_file(model.state_dict(), folder / f"{name}.initial.safetensors")
    if shape.sgd:
        optimizer: torch.optim.Optimizer = torch.optim.SGD(
            model.parameters(), lr=shape.rate, momentum=0.9, weight_decay=shape.decay
        )
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=shape.rate, weight_decay=shape.decay)
    start = time.process_time()
    step, share, first, last = 0, 0.0, float("nan"), 0.0
    while share < 1:
        share = min(1.0, (time.process_time() - start) / seconds)
        for group in optimizer.param_groups:
            group["lr"] = shape.rate * min(1.0, (step + 1) / 50) * (0.05 + 0.95 * (1 + math.cos(math.pi * share)) / 2)
        loss = _loss(model, shape)
        first = float(loss.detach()) if step == 0 else first
        last = float(loss.detach()) if step == 0 else 0.95 * last + 0.05 * float(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
    save_file(model.state_dict(), folder / f"{name}.safetensors")
    return first, last, step


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        if not (target / f"{name}.safetensors").exists():
            first, last, steps = train(name, target, seconds=25.0 if isinstance(NETWORKS[name], Pile) else 40.0)
            print(f"{name:24} loss {first:.3f} to {last:.3f} in {steps} steps", flush=True)
