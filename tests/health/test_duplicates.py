"""Filters that are the same, or nearly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only


def _conv() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(64, 8, 3, 3) * 0.1


def test_a_block_that_was_written_twice(tmp_path: Path) -> None:
    weight = _conv()
    weight[32:] = weight[:32]
    found = only(observe(tmp_path, {"conv.weight": weight}, "duplicate-filters"))
    assert found.severity is Severity.WARNING
    assert found.says == ("32 of 64 rows of conv.weight (50.0 %) are exact copies of another, each 32 rows behind it.")
    assert number(found, "threshold_share") == 0.05


def test_near_copies_are_found_by_their_angle(tmp_path: Path) -> None:
    weight = _conv()
    weight[50:60] = weight[3] * 1.5 + torch.randn(10, 8, 3, 3) * 1e-4
    found = only(observe(tmp_path, {"conv.weight": weight}, "duplicate-filters"))
    assert found.says == "10 of 64 rows of conv.weight (15.6 %) are nearly the same as another, row 50 as 3."
    weight[50:60] = weight[3] * 1.5 + torch.randn(10, 8, 3, 3) * 1e-2
    assert observe(tmp_path, {"conv.weight": weight}, "duplicate-filters") == ()


def test_a_few_exact_copies_are_a_note_and_opposite_filters_none(tmp_path: Path) -> None:
    weight = _conv()
    weight[1] = weight[0]
    assert only(observe(tmp_path, {"conv.weight": weight}, "duplicate-filters")).severity is Severity.NOTICE
    weight[1] = -weight[0]
    assert observe(tmp_path, {"conv.weight": weight}, "duplicate-filters") == ()


def test_equal_sums_alone_are_no_copies(tmp_path: Path) -> None:
    weight = torch.arange(1.0, 257.0).repeat(8, 1).reshape(8, 256)
    weight += torch.arange(8)[:, None] * 0.25
    weight[1::2] = weight[::2].flip(1)
    state = {"fc.weight": torch.cat([weight, torch.randn(200, 256)]) / 1000}
    assert observe(tmp_path, state, "duplicate-filters") == ()


def test_heads_repeated_for_grouped_queries_are_copied_on_purpose(tmp_path: Path) -> None:
    torch.manual_seed(0)
    heads = torch.randn(2, 8, 32)
    state = {"self_attn.k_proj.weight": heads.repeat_interleave(2, 0).reshape(32, 32)}
    found = only(observe(tmp_path, state, "duplicate-filters"))
    assert found.severity is Severity.NOTICE
    assert found.says.startswith("16 of 32 rows of self_attn.k_proj.weight (50.0 %) are copied from another")


def test_kernels_of_nine_are_compared_exactly(tmp_path: Path) -> None:
    torch.manual_seed(0)
    kernels = torch.randn(64, 1, 3, 3)
    kernels[32:] = kernels[:32]
    assert only(observe(tmp_path, {"dw.weight": kernels}, "duplicate-filters")).severity is Severity.WARNING


def test_rows_of_two_values_are_equal_by_chance(tmp_path: Path) -> None:
    torch.manual_seed(0)
    signs = torch.randn(256, 1, 3, 3).sign()
    assert len(signs.reshape(256, 9).unique(dim=0)) < 256
    assert observe(tmp_path, {"dw.weight": signs}, "duplicate-filters") == ()


def test_short_rows_and_dead_ones_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    short = torch.randn(64, 1, 2, 3)
    short[32:] = short[:32]
    near = torch.randn(64, 1, 3, 3)
    near[32:] = near[:32] * 2
    weight = _conv()
    weight[:2] = 0
    assert (
        observe(tmp_path, {"dw.weight": short, "near.weight": near, "conv.weight": weight}, "duplicate-filters") == ()
    )


def _table(rows: int = 1000) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(rows, 16) * 0.3


@pytest.mark.parametrize(("copies", "severity"), [(1, Severity.NOTICE), (50, Severity.NOTICE), (51, Severity.WARNING)])
def test_entries_of_a_table_that_are_copies(tmp_path: Path, copies: int, severity: Severity) -> None:
    table = _table()
    table[600 : 600 + copies] = table[100 : 100 + copies]
    found = only(observe(tmp_path, {"user_emb.weight": table}, "duplicate-rows", "duplicate-filters", "untouched-rows"))
    assert (found.id, found.severity, number(found, "copies")) == ("duplicate-rows", severity, copies)
    where = "each 500 rows behind it." if copies > 1 else "row 600 as 100."
    assert found.says.endswith(f"are exact copies of another, {where}")


def test_entries_nobody_uses_and_words_that_mean_the_same_are_quiet(tmp_path: Path) -> None:
    filled, zero, constant, near, narrow = (_table() for _ in range(5))
    filled[900:] = filled[899].clone()
    zero[900:] = 0
    constant[[3, 5]] = 1
    near[7] = near[8] * 1.0001
    narrow = torch.randn(1000, 8)
    narrow[7] = narrow[8]
    tables = {"filled": filled, "zero": zero, "constant": constant, "near": near, "narrow": narrow}
    state = {f"{name}.embed_tokens.weight": table for name, table in tables.items()}
    assert observe(tmp_path, state, "duplicate-rows", "duplicate-filters") == ()
