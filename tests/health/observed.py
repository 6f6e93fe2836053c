"""A state dict written to a file, opened and examined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from inspector.findings import Finding
from inspector.health.examine import examine
from inspector.readers import open_checkpoint


def observe(tmp_path: Path, state: Mapping[str, torch.Tensor], *ids: str) -> tuple[Finding, ...]:
    """The findings of these kinds, or all."""
    path = tmp_path / "w.pth"
    torch.save(dict(state), path)
    return tuple(f for f in examine(open_checkpoint(path)).findings if not ids or f.id in ids)


def only(found: tuple[Finding, ...]) -> Finding:
    """The one finding there is."""
    assert len(found) == 1, [f.says for f in found]
    return found[0]


def number(finding: Finding, label: str) -> float:
    """One of its numbers."""
    return float(dict(finding.evidence)[label])


def layers(count: int = 6, width: int = 32, seed: int = 0) -> dict[str, torch.Tensor]:
    """Healthy linear layers "layers.0.fc.weight" ... of one shape."""
    torch.manual_seed(seed)
    return {f"layers.{i}.fc.weight": torch.randn(width, width) / width**0.5 for i in range(count)}
