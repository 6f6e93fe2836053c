"""Queries, keys and values of one matrix that are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Severity
from tests.health.observed import observe, only


@pytest.mark.parametrize(("name", "axis"), [("attn.in_proj_weight", 0), ("attn.c_attn.weight", 1)])
def test_keys_that_are_the_queries_are_a_warning(tmp_path: Path, name: str, axis: int) -> None:
    torch.manual_seed(0)
    parts = list(torch.randn(3, 32, 32))
    assert observe(tmp_path, {name: torch.cat(parts, axis)}, "equal-projections", "duplicate-filters") == ()
    parts[1] = parts[0]
    found = only(observe(tmp_path, {name: torch.cat(parts, axis)}, "equal-projections", "duplicate-filters"))
    assert (found.id, found.severity) == ("equal-projections", Severity.WARNING)
    assert found.says == f"In {name} the queries and the keys are the same, number by number."
