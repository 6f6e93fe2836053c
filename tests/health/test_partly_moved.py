"""What an optimizer moved in some rows, or only decayed, is not said to be unchanged since initialisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from inspector.health.generator import in_normal_pairs, in_redrawn_pairs, on_normal_radii
from tests.health.observed import observe

IDS = ("fresh-weights", "untrained-head", "unloaded-backbone", "unchanged-layers")


class _Tagger(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(rows, 32, padding_idx=0)
        self.rnn = nn.LSTM(32, 64, batch_first=True)
        self.fc = nn.Linear(64, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.rnn(self.emb(x))[0])


def _subjects(tmp_path: Path, state: dict[str, torch.Tensor]) -> set[str]:
    return {name for found in observe(tmp_path, state, *IDS) for name in found.subjects}


@pytest.mark.parametrize("rows", [500, 12_000], ids=["read at once", "read in stretches"])
@pytest.mark.parametrize(
    ("optimizer", "count"), [("AdamW", 1), ("Adam", 1), ("Adam", 20), ("AdamW", 20)], ids=lambda value: str(value)
)
def test_an_embedding_of_which_few_rows_had_gradients(optimizer: str, count: int, rows: int, tmp_path: Path) -> None:
    torch.manual_seed(5)
    model = _Tagger(rows)
    before = model.emb.weight.detach().clone()
    assert "emb.weight" in _subjects(tmp_path, model.state_dict())
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)
    for _ in range(count):
        made.zero_grad()
        nn.functional.cross_entropy(
            model(torch.randint(1, 40, (4, 9))).flatten(0, 1), torch.randint(0, 7, (36,))
        ).backward()
        made.step()
    changed = (model.emb.weight != before).any(1).sum()
    assert 0 < changed < 40 if optimizer == "Adam" else changed == rows - 1
    assert "emb.weight" not in _subjects(tmp_path, model.state_dict())


def test_rows_of_uniform_numbers_that_moved(tmp_path: Path) -> None:
    """A linear layer of which few outputs had gradients."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512, bias=False), nn.ReLU(), nn.Linear(512, 10))
    assert "0.weight" in _subjects(tmp_path, model.state_dict())
    with torch.no_grad():
        model[0].weight[300:303] += 1e-4 * torch.randn(3, 256)
        model[2].weight += 0.01 * torch.randn(10, 512)
        model[2].bias += 1
    assert "0.weight" not in _subjects(tmp_path, model.state_dict())


@pytest.mark.parametrize("std", [1.0, 0.02])
def test_decay_of_one_step_ends_the_radii_and_leaves_the_angles(std: float) -> None:
    for seed in range(5):
        values = torch.empty(4096).normal_(0, std, generator=torch.Generator().manual_seed(seed)).numpy()
        assert in_normal_pairs([values]) and on_normal_radii([values], std)
        for factor in (1 - 1e-5, 1 - 1e-6, 0.99):
            decayed = values * np.float32(factor)
            assert in_normal_pairs([decayed]) and not on_normal_radii([decayed], std)


def test_what_trunc_normal_draws_again_is_no_move_and_many_rows_that_moved_are() -> None:
    values = torch.empty(500, 32)
    torch.nn.init.trunc_normal_(values, std=0.02, a=-0.04, b=0.04, generator=torch.Generator().manual_seed(0))
    assert in_redrawn_pairs([values.numpy().ravel()], 2.0)
    values[::5] += 1e-4 * torch.randn(100, 32, generator=torch.Generator().manual_seed(1))
    assert not in_redrawn_pairs([values.numpy().ravel()], 2.0)
