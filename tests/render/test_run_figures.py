"""A run as figures: every number in them is the report's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from inspector.events.report import EventLog, ScalarSeries
from inspector.render.run_curves import curves_of
from inspector.render.run_figures import curve_figure, histogram_figure, lanes_figure, strip_figure
from inspector.render.run_measures import LAYER_MEASURES, UPDATE
from inspector.run.groups import By, groups_of, series_of
from inspector.run.measure import measure_run
from inspector.run.report import Measure, RunReport
from tests.run.made import save, states


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    """Five checkpoints: conv stands still up to the third, fc.weight holds a NaN from the fourth on."""
    folder = tmp_path_factory.mktemp("run")
    of = states(5)
    for state in of[:3]:
        state["conv.weight"] = of[0]["conv.weight"]
    of[3]["fc.weight"][0, 0] = math.nan
    of[4]["fc.weight"][0, :2] = math.nan
    files = [
        save(folder, f"{n}.pth", state, epoch=n, loss=1 / n, batches=100 * n, lr=0.1**n, best_acc=torch.tensor(n / 10))
        for n, state in enumerate(of, start=1)
    ]
    return measure_run(files)


def test_the_strip_has_the_logarithm_of_each_update_grey_for_none_and_a_cross_for_nan(report: RunReport) -> None:
    groups = groups_of(report, By.MODULE)
    figure = strip_figure(report, groups, UPDATE)
    heat, marks = figure.data
    assert list(heat.y) == ["conv", "bn", "fc"]
    updates = series_of(report, groups[1], Measure.UPDATE)
    np.testing.assert_allclose(heat.z[1][1:], np.log10(updates[1:]))
    assert heat.z[0][0] is None and heat.z[0][1] == heat.zmin < min(v for row in heat.z for v in row[3:] if v)
    assert heat.z[2][3] is None
    assert list(zip(marks.x, marks.y, strict=True)) == [(3, "fc"), (4, "fc")]
    assert [row[2] for row in marks.customdata] == ["1", "2"]
    # Nothing is before the first checkpoint, so that it has no column.
    assert tuple(figure.layout.xaxis.range) == (0.5, 4.5) and list(figure.layout.xaxis.ticktext) == ["2", "3", "4", "5"]


@pytest.mark.parametrize("measure", LAYER_MEASURES, ids=lambda one: one.id)
def test_every_measure_is_drawn_both_ways(report: RunReport, measure: object) -> None:
    groups = groups_of(report, By.TENSOR)
    assert strip_figure(report, groups, measure).data[0].z  # type: ignore[arg-type]
    lanes = lanes_figure(report, groups, measure, one_scale=True)  # type: ignore[arg-type]
    assert len(lanes.data) == 2 * len(groups)


def test_lanes_say_the_first_and_last_value_and_what_hardly_changes_looks_so(report: RunReport) -> None:
    (rms,) = (one for one in LAYER_MEASURES if one.id == "rms")
    groups = groups_of(report, By.MODULE)
    figure = lanes_figure(report, groups, rms, one_scale=False)
    values = series_of(report, groups[0], Measure.RMS)
    assert figure.layout.annotations[0].text == f"{values[0]:.4g} → {values[-1]:.4g}"
    heights = np.array(figure.data[1].y) - 2
    assert np.ptp(heights) == pytest.approx(0.78 * np.ptp(values) / (0.1 * values.max()), rel=1e-6)
    one = lanes_figure(report, groups, rms, one_scale=True)
    most = max(series_of(report, group, Measure.RMS).max() for group in groups)
    np.testing.assert_allclose(one.data[1].y, 2 + 0.78 * values / most)


def test_histograms_have_shares_medians_and_where_nan_is(report: RunReport) -> None:
    (fc,) = (group for group in groups_of(report, By.TENSOR) if group.name == "fc.weight")
    heat, _, median, _, bad = histogram_figure(report, fc).data
    shares = np.array([[10**v if v is not None else 0 for v in row] for row in heat.z])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-4)
    values = states(5)[0]["fc.weight"].numpy()
    step = heat.y[1] - heat.y[0]
    assert median.y[0] == pytest.approx(np.median(values), abs=step)
    assert list(bad.x) == [3, 4]


def test_curves_begin_with_losses_scores_and_rates(report: RunReport) -> None:
    points = np.arange(3000, dtype=np.int64)
    series = ScalarSeries(
        tag="val/Loss", steps=points.tobytes(), values=points.astype(float).tobytes(), wall_times=bytes(24000)
    )
    log = EventLog(name="logs", files=(), scalars=(series,))
    curves = curves_of(replace(report, logs=(log,)))
    assert [curve.name for curve in curves] == ["loss", "val/Loss", "best_acc", "lr", "batches"]
    assert curves[0].points == tuple((float(n), 1 / n) for n in range(1, 6))
    # A screen has not so many columns; the last point is drawn.
    assert len(curves[1].points) == 1000 and curves[1].points[-1] == (2999.0, 2999.0)
    assert curve_figure(curves[0]).layout.xaxis.title.text == "epoch" and curves[1].axis == "step"
