"""Masks, lengths and directions, and singular vectors that torch keeps beside a weight."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

from inspector.findings import Severity
from inspector.health.checks.reparametrised import CHECK
from tests.health.trainings import findings, loud, one


def _pruned() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4))
    prune.l1_unstructured(model[0], "weight", 0.25)
    return model.state_dict()


def test_a_plain_model_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)).state_dict(), CHECK) == ()


def test_a_pruned_weight_is_told_with_its_share(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, _pruned(), CHECK)
    assert (found.id, found.severity) == ("pruning-not-folded", Severity.INFO)
    assert found.says == "1 weight kept with a pruning mask, 25.0 % of it masked: 0.weight_orig."
    assert loud(findings(tmp_path, _pruned())) == []


def test_a_mask_of_other_numbers_is_a_notice(tmp_path: Path) -> None:
    state = _pruned()
    state["0.weight_mask"][0, 0] = 0.5
    assert one(findings(tmp_path, state, CHECK), "pruning-mask-values").severity is Severity.NOTICE


def test_other_names_that_end_so_are_none(tmp_path: Path) -> None:
    state = {
        "conv_g": torch.randn(4, 4),
        "conv_v": torch.randn(3, 3),
        "x.bias_u": torch.randn(4),
        "y_mask": torch.ones(3),
    }
    assert findings(tmp_path, state, CHECK) == ()


def test_both_kinds_of_spectral_norm_are_told_and_their_vectors_measured(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 6)), parametrizations.spectral_norm(nn.Linear(6, 5)))
    model(torch.randn(3, 8))
    state = model.state_dict()
    (found,) = findings(tmp_path, state, CHECK)
    assert (found.id, found.subjects) == (
        "spectral-norm-not-folded",
        ("0.weight_orig", "1.parametrizations.weight.original"),
    )
    state["0.weight_u"] *= 0.5
    longer = one(findings(tmp_path, state, CHECK), "spectral-vector-length")
    assert (longer.severity, longer.subjects) == (Severity.NOTICE, ("0.weight_u",))
    assert abs(float(dict(longer.evidence)["length"]) - 0.5) < 1e-6


def test_a_mask_of_zeros_cuts_a_layer_off(tmp_path: Path) -> None:
    state = _pruned()
    state["0.weight_mask"].zero_()
    found = one(findings(tmp_path, state, CHECK), "pruning-mask-of-zeros")
    assert (found.severity, found.subjects) == (Severity.WARNING, ("0.weight_mask",))


def test_vectors_of_zeros_divide_by_nothing(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = parametrizations.spectral_norm(nn.Linear(6, 5)).state_dict()
    for name in state:
        if name.endswith(("_u", "_v")):
            state[name].zero_()
    found = one(findings(tmp_path, state, CHECK), "spectral-vector-length")
    assert found.severity is Severity.WARNING
    assert found.says.startswith("2 vectors of spectral norms of 2 are zero throughout")
