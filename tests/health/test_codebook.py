"""Codes that nothing comes near, by their counters and without."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import number, observe, only


def _book(counts: torch.Tensor) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "quantizer.embedding": torch.randn(len(counts), 16),
        "quantizer.cluster_size": counts,
        "quantizer.embed_avg": torch.randn(len(counts), 16),
    }


def test_one_code_in_use(tmp_path: Path) -> None:
    counts = torch.full((128,), 1e-9)
    counts[125] = 512.0
    found = only(observe(tmp_path, _book(counts), "codebook-collapsed"))
    assert found.severity is Severity.WARNING
    assert number(found, "unused") == 127 and number(found, "perplexity") == pytest.approx(1.0, abs=1e-6)


def test_a_third_in_use_is_a_note_and_most_in_use_is_quiet(tmp_path: Path) -> None:
    counts = torch.full((128,), 10.0)
    assert observe(tmp_path, _book(counts), "codebook-collapsed") == ()
    counts[:20] = 0
    assert observe(tmp_path, _book(counts), "codebook-collapsed") == ()
    counts[:86] = 0
    found = only(observe(tmp_path, _book(counts), "codebook-collapsed"))
    assert found.severity is Severity.NOTICE and number(found, "perplexity") == pytest.approx(42)


def test_codes_that_never_left_where_they_begin(tmp_path: Path) -> None:
    torch.manual_seed(0)
    codes = torch.empty(64, 16).uniform_(-1 / 64, 1 / 64)
    assert observe(tmp_path, {"vq.codebook.weight": codes}, "codebook-collapsed") == ()
    codes[:3] += torch.randn(3, 16)
    found = only(observe(tmp_path, {"vq.codebook.weight": codes}, "codebook-collapsed"))
    assert found.severity is Severity.WARNING and number(found, "unused") == 61
    assert observe(tmp_path, {"vq.codebook.weight": torch.randn(64, 16)}, "codebook-collapsed") == ()
