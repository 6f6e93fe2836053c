"""Rows of an embedding that were never trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only

KINDS = ("untouched-rows", "padded-vocabulary")


def _trained(rows: int = 1000, columns: int = 64) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, columns) * torch.linspace(0.04, 0.1, rows)[:, None]


def test_equal_rows_among_trained_ones(tmp_path: Path) -> None:
    table = _trained()
    table[[10, 500, 700]] = table[3].clone()
    found = only(observe(tmp_path, {"embed_tokens.weight": table}, *KINDS))
    assert (found.id, found.severity) == ("untouched-rows", Severity.NOTICE)
    assert found.says == "4 of 1,000 rows of embed_tokens.weight (0.4 %) are all the same, the first at 3."


def test_two_rows_of_zeros(tmp_path: Path) -> None:
    table = _trained()
    table[[10, 500]] = 0
    found = only(observe(tmp_path, {"embed_tokens.weight": table}, *KINDS))
    assert found.says == "2 of 1,000 rows of embed_tokens.weight (0.2 %) are zero, the first at 10."


def test_rows_as_long_as_new_ones_while_the_others_moved(tmp_path: Path) -> None:
    table = _trained()
    table[100:140] = torch.randn(40, 64) * 0.02
    found = only(observe(tmp_path, {"wte.weight": table}, *KINDS))
    assert "40 of 1,000 rows of wte.weight (4.0 %) are as long as when they were made" in found.says
    assert number(found, "first") == 100


def test_a_vocabulary_filled_up_to_a_round_number(tmp_path: Path) -> None:
    table = torch.cat([_trained(), torch.zeros(24, 64)])
    found = only(observe(tmp_path, {"embed_tokens.weight": table, "lm_head.weight": table.clone()}, *KINDS))
    assert (found.id, found.severity) == ("padded-vocabulary", Severity.INFO)
    assert found.subjects == ("embed_tokens.weight", "lm_head.weight")
    assert "24 of 1,024 rows" in found.says and "up to a multiple of 256" in found.says


def test_new_trained_and_padding_rows_are_quiet(tmp_path: Path) -> None:
    torch.manual_seed(1)
    new = torch.nn.Embedding(1000, 64, padding_idx=0).weight.data
    assert observe(tmp_path, {"embed_tokens.weight": new}, *KINDS) == ()
    assert observe(tmp_path, {"embed_tokens.weight": _trained()}, *KINDS) == ()
    moving = torch.randn(1000, 64) * torch.linspace(0.026, 0.04, 1000)[:, None]
    assert observe(tmp_path, {"embed_tokens.weight": moving}, *KINDS) == ()
    trained = _trained()
    trained[:1] = 0
    assert observe(tmp_path, {"embed_tokens.weight": trained}, *KINDS) == ()


def test_a_trained_row_that_passes_through_the_length_of_new_ones_is_not_said_to_be_untouched(tmp_path: Path) -> None:
    table = _trained()
    table[466] *= 0.02 / table[466].std()
    assert observe(tmp_path, {"embed_tokens.weight": table}, *KINDS) == ()


def test_new_rows_at_the_end_that_are_far_longer_are_named(tmp_path: Path) -> None:
    table = torch.cat([_trained(96), torch.nn.Embedding(32, 64).weight.detach()])
    found = only(observe(tmp_path, {"wte.weight": table}, *KINDS, "embedding-rows-outsized", "outlier-channels"))
    assert (found.id, found.severity) == ("embedding-rows-outsized", Severity.WARNING)
    assert found.says.startswith("Rows 96 to 127 of wte.weight (32 of 128) are")
    assert number(found, "times") == pytest.approx(1.0 / 0.07, rel=0.15)
    # As long as the others, they are what a vocabulary is filled up with; of many lengths, they were trained.
    table[96:] *= 0.07
    assert observe(tmp_path, {"wte.weight": table}, "embedding-rows-outsized") == ()
    table[96:] *= torch.linspace(5, 50, 32)[:, None]
    assert observe(tmp_path, {"wte.weight": table}, "embedding-rows-outsized") == ()
