"""What statistics alone show, beside the quiet twins that must stay silent."""

from __future__ import annotations

from pathlib import Path

import torch

from inspector.findings import Finding, Severity
from inspector.health.examine import examine
from inspector.readers import open_checkpoint


def _observed(tmp_path: Path, state: dict[str, torch.Tensor]) -> tuple[Finding, ...]:
    path = tmp_path / "w.pth"
    torch.save(state, path)
    return examine(open_checkpoint(path)).findings


def test_a_healthy_layer_has_no_findings(tmp_path: Path) -> None:
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(8)
    state = {**torch.nn.Conv2d(3, 8, 3).state_dict(), **norm.state_dict(), "ids": torch.full((4, 4), 70_000)}
    state["big_variance.running_var"] = torch.full((8,), 1e6)
    assert _observed(tmp_path, state) == ()


def test_nan_and_infinity_are_counted_with_the_first_place(tmp_path: Path) -> None:
    weight = torch.ones(4, 5)
    weight[1, 2] = float("nan")
    weight[3, 4] = -float("inf")
    found = _observed(tmp_path, {"fc.weight": weight * torch.arange(20).reshape(4, 5)})
    assert [f.id for f in found] == ["non-finite"]
    assert found[0].severity is Severity.ERROR
    assert found[0].says == "fc.weight holds 1 NaN (5.0 %) and 1 infinite number among 20, the first at [1, 2]."


def test_infinities_of_a_mask_are_a_note_and_its_nan_an_error(tmp_path: Path) -> None:
    mask = torch.full((4, 4), -float("inf")).triu(1)
    assert [f.severity for f in _observed(tmp_path, {"attn.mask": mask})] == [Severity.NOTICE]
    assert [f.severity for f in _observed(tmp_path, {"attn.mask": mask * 0})] == [Severity.ERROR]


def test_a_constant_and_a_huge_weight(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = {"a.weight": torch.full((3, 3), 0.05), "b.weight": torch.randn(3, 3) * 1e6, "a.bias": torch.zeros(3)}
    found = _observed(tmp_path, state)
    assert [(f.id, f.subjects) for f in found] == [
        ("constant-weight", ("a.weight",)),
        ("large-weight", ("b.weight",)),
        ("half-precision-overflow", ("b.weight",)),
    ]
    assert "are 0.05" in found[0].says


def test_all_nan_is_said_once(tmp_path: Path) -> None:
    found = _observed(tmp_path, {"w": torch.full((2, 2), float("nan"))})
    assert [f.id for f in found] == ["non-finite"]
    assert "4 NaN (100 %) among 4" in found[0].says


def test_empty_and_single_element_weights_are_left_alone(tmp_path: Path) -> None:
    assert _observed(tmp_path, {"none": torch.zeros(0, 3), "one": torch.zeros(1, 1)}) == ()
