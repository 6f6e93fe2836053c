"""The curve of singular values, and that the line over it is the power law that was fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inspector.health.power_law import PowerLaw
from inspector.health.roles import Role
from inspector.health.spectrum_report import Spectrum
from inspector.render.weight_figures import spectrum_figure

LAW = PowerLaw(alpha=3.0, error=0.2, lowest=0.01, tail=100, distance=0.05)


def made(values: np.ndarray, law: PowerLaw | None = None) -> Spectrum:
    return Spectrum(
        name="w",
        role=Role.LINEAR,
        rows=len(values),
        columns=400,
        living=len(values),
        spectral_norm=float(values[0]),
        stable_rank=1.0,
        effective_rank=1.0,
        values=values.astype(np.float64).tobytes(),
        power_law=law,
    )


def test_values_stand_by_their_number_and_rounding_is_left_out() -> None:
    figure = spectrum_figure(made(np.array([4.0, 2.0, 1e-6, 1e-9, 0.0])))
    (curve,) = figure.data
    assert list(curve.x) == [1, 2, 3] and list(curve.y) == [4.0, 2.0, 1e-6]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_the_line_is_the_law() -> None:
    """Drawn from the law, the curve lies on the line: x = x_min (i / n)^(-1 / (alpha - 1)), sigma = sqrt(400 x)."""
    number = np.arange(1, 101)
    values = np.sqrt(400 * 0.01 * (number / 100) ** -0.5)
    curve, line = spectrum_figure(made(values, LAW)).data
    assert np.interp(np.asarray(curve.x, float), line.x, line.y) == pytest.approx(curve.y, rel=2e-3)
    assert (line.x[0], line.x[-1]) == (1, pytest.approx(100))
    steeper = spectrum_figure(made(values, replace(LAW, alpha=2.0))).data[1]
    assert steeper.y[0] > line.y[0] and steeper.y[-1] == pytest.approx(line.y[-1])


@pytest.mark.parametrize(
    ("least", "most", "some"),
    [(1, 3, ["1", "2", "3"]), (1, 800, ["1", "2", "5", "10", "100", "500"]), (1e-3, 2e3, ["0.001", "1", "1,000"])],
)
def test_labels_stand_where_the_values_are(least: float, most: float, some: list[str]) -> None:
    axis = spectrum_figure(made(np.array([most, least]))).layout.yaxis
    shown = [text for at, text in zip(axis.tickvals, axis.ticktext, strict=True) if least <= at <= most]
    assert set(some) <= set(shown) and 2 <= len(shown) <= 12


def test_values_that_are_almost_equal_have_labels_too() -> None:
    axis = spectrum_figure(made(np.array([2.63e6, 2.61e6]))).layout.yaxis
    assert len(axis.tickvals) == 4 and 2.6e6 < min(axis.tickvals) < max(axis.tickvals) < 2.7e6
