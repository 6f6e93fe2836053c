"""What statistics alone show, beside the quiet twins that must stay silent."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.findings import Finding, Severity
from inspector.health import spectra
from inspector.health.examine import examine
from inspector.health.report import HealthReport
from inspector.health.thresholds import Thresholds
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


def test_what_checks_passed_over_is_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    same, scaled = torch.randn(40, 30), torch.randn(40, 30)
    state = {
        "a.weight": same,
        "b.weight": same.clone(),
        "c.weight": scaled,
        "d.weight": torch.zeros(3, 3, device="meta"),
    }
    torch.save(state, tmp_path / "w.pth")
    checkpoint = open_checkpoint(tmp_path / "w.pth")
    # Both are read: twice 4,800 bytes.
    enough = examine(checkpoint, thresholds=Thresholds(compared_nbytes=9600))
    assert enough.passed_over == () and [what for what, _ in enough.not_examined] == ["d.weight"]
    assert _copies(enough) == "b.weight is the same as a.weight, though stored a second time."
    short = examine(checkpoint, thresholds=Thresholds(compared_nbytes=9599))
    assert short.passed_over == (("a.weight", "not compared with others: up to 9.60 kB are read again for that"),)
    assert short.not_examined == (*short.weights.skipped, *short.passed_over)
    assert _copies(short) == "b.weight is the same in every statistic as a.weight, though stored a second time."


def _copies(report: HealthReport) -> str:
    return next(f.says for f in report.findings if f.id == "copied-layers")


def test_spectra_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    state = {f"layers.{i}.mlp.weight": torch.randn(64, 80) / 8 for i in range(6)}
    state["layers.3.mlp.weight"] = torch.randn(64, 3) @ torch.randn(3, 80) / 8
    state["layers.4.mlp.weight"] *= 0
    torch.save(state, tmp_path / "w.pth")
    checkpoint = open_checkpoint(tmp_path / "w.pth")
    assert examine(checkpoint).spectra is None
    told: list[tuple[int, int | None]] = []
    health = examine(checkpoint, spectra=True, progress=lambda done, total, note: told.append((done, total)))
    assert health.spectra is not None and len(health.spectra.spectra) == 5
    assert {"low-rank"} <= {f.id for f in health.findings} - {f.id for f in examine(checkpoint).findings}
    assert [f.severity.rank for f in health.findings] == sorted(
        (f.severity.rank for f in health.findings), reverse=True
    )
    assert health.passed_over == (("layers.4.mlp.weight", "no spectrum: it is zero throughout"),)
    # The elements of six matrices, each told of on the way.
    shares = [done for done, total in told if total == 6 * 64 * 80]
    assert shares == sorted(shares) and len(set(shares)) > 6 and shares[-1] == 6 * 64 * 80
    monkeypatch.setattr(spectra, "MOST_SIDE", 63)
    long = examine(checkpoint, spectra=True)
    assert ("layers.0.mlp.weight", "norm and stable rank alone: its shorter side is 64") in long.passed_over
