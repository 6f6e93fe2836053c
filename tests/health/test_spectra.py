"""Spectra against numpy's singular values, and what they say beside layers that are well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.findings import Severity
from inspector.health import spectra
from inspector.health.power_law import fit_power_law
from inspector.health.roles import Role
from inspector.health.spectra import as_matrix, effective_rank, measure_spectra, spectral_norm
from inspector.health.spectrum_report import SpectrumReport
from inspector.readers import open_checkpoint


def _measured(tmp_path: Path, state: dict[str, torch.Tensor]) -> SpectrumReport:
    torch.save(state, tmp_path / "w.pth")
    return measure_spectra(open_checkpoint(tmp_path / "w.pth"))


def _layers(count: int = 6, side: int = 64) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {f"layers.{i}.mlp.weight": torch.randn(side, side + 16) / side**0.5 for i in range(count)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_values_and_ranks_are_those_of_numpys_decomposition(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(40, 24, 3, 3).to(dtype)
    (one,) = _measured(tmp_path, {"conv.weight": weight}).spectra
    values = np.linalg.svd(weight.double().numpy().reshape(40, -1), compute_uv=False)
    assert (one.rows, one.columns, one.living, one.side) == (40, 216, 40, 40)
    assert np.frombuffer(one.values, np.float64) == pytest.approx(values, rel=1e-6)
    assert one.spectral_norm == pytest.approx(values[0], rel=1e-6)
    assert one.stable_rank == pytest.approx((values**2).sum() / values[0] ** 2, rel=1e-6)


def test_effective_rank_of_equal_values_is_their_number_and_of_one_is_one() -> None:
    assert effective_rank(np.ones(7)) == pytest.approx(7)
    assert effective_rank(np.array([3.0, 0.0, 0.0])) == pytest.approx(1)
    # exp(-(2/3 ln 2/3 + 1/3 ln 1/3)) = 3 / 2^(2/3)
    assert effective_rank(np.array([2.0, 1.0])) == pytest.approx(3 / 2 ** (2 / 3))


def test_power_iteration_finds_the_largest_value() -> None:
    matrix = np.random.default_rng(0).standard_normal((80, 300)).astype(np.float32)
    exact = np.linalg.norm(matrix.astype(np.float64), 2)
    assert 0.995 * exact <= spectral_norm(matrix) <= exact * (1 + 1e-6)
    assert spectral_norm(np.diag(np.array([1, 5, 2], np.float32))) == pytest.approx(5, rel=1e-4)
    assert spectral_norm(np.zeros((4, 4), np.float32)) == 0


def test_a_long_matrix_has_its_norm_and_stable_rank_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "MOST_SIDE", 63)
    (one, *_) = _measured(tmp_path, _layers()).spectra
    assert one.effective_rank is None and one.values == b"" and one.power_law is None
    values = np.linalg.svd(_layers()["layers.0.mlp.weight"].numpy(), compute_uv=False)
    assert one.spectral_norm == pytest.approx(values[0], rel=1e-2)
    monkeypatch.setattr(spectra, "MOST_NUMEL", 63)
    report = _measured(tmp_path, _layers(1))
    assert report.spectra == ()
    assert report.skipped == (("layers.0.mlp.weight", "64x80 is more than 63 elements"),)


def test_what_has_no_spectrum_is_skipped_with_the_reason(tmp_path: Path) -> None:
    state = {"a.weight": torch.zeros(40, 40), "b.weight": torch.full((40, 40), float("nan"))}
    report = _measured(tmp_path, state)
    assert [why for _, why in report.skipped] == ["it is zero throughout", "it holds NaN or infinity"]


def test_a_transposed_kernel_is_turned() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert as_matrix(weight, Role.CONV).shape == (2, 12)
    assert as_matrix(weight, Role.TRANSPOSED)[1].tolist() == [4, 5, 6, 7, 16, 17, 18, 19]


def test_random_layers_have_no_notes_but_of_their_tails(tmp_path: Path) -> None:
    assert _measured(tmp_path, _layers()).findings == ()
    report = _measured(tmp_path, _layers(2, side=400))
    assert [(f.id, f.severity) for f in report.findings] == [("spectral-tails", Severity.INFO)]
    assert all(one.power_law is not None and one.power_law.alpha > 6 for one in report.spectra)


def test_a_layer_ten_times_as_strong_as_its_like(tmp_path: Path) -> None:
    state = _layers()
    state["layers.3.mlp.weight"] *= 12
    found = [f for f in _measured(tmp_path, state).findings if f.id == "spectral-norm-outlier"]
    assert [(f.severity, f.subjects) for f in found] == [(Severity.NOTICE, ("layers.3.mlp.weight",))]
    state["layers.3.mlp.weight"] *= 8 / 12
    assert not [f for f in _measured(tmp_path, state).findings if f.id == "spectral-norm-outlier"]


def test_a_weight_of_rank_three_is_a_warning_and_of_a_query_a_note(tmp_path: Path) -> None:
    thin = torch.randn(64, 3) @ torch.randn(3, 80)
    for name, severity in (("layers.3.mlp.weight", Severity.WARNING), ("layers.3.q_proj.weight", Severity.NOTICE)):
        found = [f for f in _measured(tmp_path, _layers() | {name: thin}).findings if f.id == "low-rank"]
        assert [(f.severity, f.subjects) for f in found] == [(severity, (name,))]


def test_pruned_rows_and_small_matrices_are_no_lost_directions(tmp_path: Path) -> None:
    state = _layers()
    state["layers.3.mlp.weight"][10:, :] = 0
    state["layers.4.mlp.weight"][:20, :] = 0
    state["tiny.weight"] = torch.ones(8, 8)
    assert not [f for f in _measured(tmp_path, state).findings if f.id == "low-rank"]


@pytest.mark.parametrize("alpha", [1.8, 2.5, 4.0])
def test_an_exponent_is_found_again(alpha: float) -> None:
    """Numbers drawn from the law: x = x_min (1 - u)^(-1 / (alpha - 1))."""
    uniform = np.random.default_rng(0).random(4000)
    law = fit_power_law(3.0 * (1 - uniform) ** (-1 / (alpha - 1)))
    assert law is not None
    assert abs(law.alpha - alpha) < 4 * law.error
    assert law.distance < 0.05 and law.tail > 500


def test_rounding_is_no_tail(tmp_path: Path) -> None:
    """Sixty directions, and the noise of float32 beside them."""
    torch.manual_seed(0)
    for rank, fitted in ((3, False), (60, True)):
        (one,) = _measured(tmp_path, {"a.weight": torch.randn(200, rank) @ torch.randn(rank, 300)}).spectra
        assert len(one.values) == 200 * 8 and (one.power_law is not None) is fitted
        assert one.power_law is None or one.power_law.tail <= rank


def test_few_or_equal_numbers_are_not_fitted() -> None:
    assert fit_power_law(np.ones(100)) is None
    assert fit_power_law(np.arange(1.0, 49.0)) is None
