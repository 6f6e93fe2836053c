"""A state dict saved, opened and examined: what the tests of single checks begin with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from inspector.findings import Finding
from inspector.health.examine import examine
from inspector.readers import open_checkpoint


def findings_of(tmp_path: Path, state: Mapping[str, torch.Tensor], *ids: str) -> tuple[Finding, ...]:
    """The findings of these ids, or all, worst first."""
    path = tmp_path / "weights.pth"
    torch.save(dict(state), path)
    return tuple(f for f in examine(open_checkpoint(path)).findings if not ids or f.id in ids)


def steps(model: torch.nn.Module, *inputs: torch.Tensor, count: int = 1, lr: float = 0.01) -> torch.nn.Module:
    """The model after so many steps of SGD that bring its answer nearer to random numbers."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    target = None
    for _ in range(count):
        answer = model(*inputs)
        while isinstance(answer, (tuple, list)):
            answer = answer[0]
        target = torch.randn_like(answer) if target is None else target
        optimizer.zero_grad()
        (answer - target).square().mean().backward()
        optimizer.step()
    return model
