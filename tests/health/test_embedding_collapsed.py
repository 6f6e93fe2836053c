"""Tables whose rows all point one way, beside those that share a direction and those that hold scales."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional

from inspector.findings import Severity
from tests.health.observed import number, observe, only

KIND = "embedding-collapsed"


def _table(own: float, shared: float = 1.0, rows: int = 300, width: int = 32) -> dict[str, torch.Tensor]:
    """Rows of one shared vector and as much of their own."""
    torch.manual_seed(0)
    return {"user_emb.weight": shared * torch.randn(width) + own * torch.randn(rows, width)}


@pytest.mark.parametrize("own", [1e-6, 0.01, 0.05])
def test_rows_that_point_one_way_are_a_warning(own: float, tmp_path: Path) -> None:
    state = _table(own)
    found = only(observe(tmp_path, state, KIND))
    rows = functional.normalize(state["user_emb.weight"].double(), dim=1)
    cosines = (rows @ rows.T)[~torch.eye(300, dtype=torch.bool)]
    assert found.severity is Severity.WARNING
    assert number(found, "cosine") == pytest.approx(float(cosines.square().mean().sqrt()), rel=1e-6)


def test_rows_on_both_ends_of_one_line_are_found_too(tmp_path: Path) -> None:
    state = _table(0.01)
    state["user_emb.weight"][::2] *= -1
    assert only(observe(tmp_path, state, KIND)).severity is Severity.WARNING


def test_a_shared_direction_a_default_row_and_scales_are_quiet(tmp_path: Path) -> None:
    assert observe(tmp_path, _table(0.2), KIND) == ()
    assert observe(tmp_path, _table(1.0, 0.0), KIND) == ()
    half = _table(1.0, 0.0)
    half["user_emb.weight"][150:] = half["user_emb.weight"][0]
    assert observe(tmp_path, half, KIND) == ()
    # BigGAN's conditional batch norm: scales of normal(1, 0.02), then shifts of 0.
    scales = torch.cat([1 + 0.02 * torch.randn(100, 32), torch.zeros(100, 32)], 1)
    assert observe(tmp_path, {"bn1.embed.weight": scales}, KIND) == ()
    assert observe(tmp_path, {"bn1.embed.weight": scales[:, :32]}, KIND) == ()
