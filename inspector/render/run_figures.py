"""A run as figures: curves of what was stated and logged, layers over time as a heat strip or as lines, histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.colors import get_colorscale

from inspector.render.figure_table import in_matrix, in_table
from inspector.render.figures import ACCENT, GRID, dressed, plain_text
from inspector.render.run_curves import Curve
from inspector.render.run_measures import LayerMeasure
from inspector.run.groups import Group, histogram_of, quantiles_of, series_of
from inspector.run.report import Measure, RunReport
from inspector.units import shorten_middle

_BAD = "#d62728"
_SECOND = "#d98c21"
# Of the heat strip's scale, what is left for zero, which has no logarithm.
_ZERO_SHARE, _ZERO = 0.04, "rgba(128,128,128,0.35)"
# Below a millionth of the largest everything is drawn alike.
_MOST_DECADES = 6.0
_LEAST_SHARE_LOG10 = -5
_QUANTILES = ((0.05, "5 %"), (0.5, "median"), (0.95, "95 %"))
_MEDIAN, _AROUND = {"width": 2.5}, {"width": 1.2, "dash": "dot"}
_MOST_TICKS, _MARKED, _NAMED = 14, 40, 30
# A lane spans at least this share of its largest value, so that what hardly changes looks so.
_LEAST_SPAN = 0.1
_LANE_PIXELS, _LANE_FILLED = 34, 0.78


def curve_figure(curve: Curve) -> go.Figure:
    """One number over the run; a point for each checkpoint where they state it, a line where it was logged."""
    known = [(x, y) for x, y in curve.points if math.isfinite(y)]
    figure = go.Figure(
        go.Scatter(
            x=[x for x, _ in known],
            y=[y for _, y in known],
            mode="lines+markers" if not curve.logged and len(known) <= _MARKED else "lines",
            line={"color": _SECOND if curve.logged else ACCENT, "width": 2},
            marker={"size": 6},
            hovertemplate=f"{plain_text(curve.axis)} %{{x:,.6~g}}: %{{y:.5g}}<extra></extra>",
        )
    )
    figure.update_xaxes(title_text=curve.axis, showgrid=False, zeroline=False, nticks=7)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, nticks=5, exponentformat="e")
    return dressed(figure, height=190)


def strip_figure(report: RunReport, groups: Sequence[Group], measure: LayerMeasure) -> go.Figure:
    """The heat strip: a row per group, a column per checkpoint. Zero is grey, what is not known is left clear, NaN and
    infinite numbers are marked by a cross."""
    values = np.array([measure.values(report, group) for group in groups])
    names = _names(groups)
    scale = _log_scale(values, measure.zero) if measure.logarithmic else _linear_scale(values, measure)
    members = [plain_text(shorten_middle(member.name, 48)) for member in report.members]
    figure = go.Figure(
        go.Heatmap(
            x=list(range(len(members))),
            y=names,
            customdata=[
                [(plain_text(shorten_middle(group.name, 60)), name, measure.text(float(value)) or "not known")
                 for name, value in zip(members, row, strict=True)]
                for group, row in zip(groups, values, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{customdata[2]}<extra></extra>",
            meta=in_matrix(("layer", "customdata.0"), cells="customdata.2", heads="customdata.1", says=measure.says),
            hoverongaps=False,
            xgap=1 if len(members) <= _MARKED else 0,
            ygap=1 if len(groups) <= _MARKED else 0,
            **scale,
        )
    )  # fmt: skip
    _mark_not_finite(figure, report, groups, names, members)
    # Nothing is before the first.
    begins = 1 if len(members) > 1 and np.isnan(values[:, 0]).all() else 0
    figure.update_xaxes(**_member_axis(report, begins))
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, **_few_names(groups, names))
    return dressed(figure, height=min(900, max(200, 100 + 22 * len(groups))))


def lanes_figure(report: RunReport, groups: Sequence[Group], measure: LayerMeasure, *, one_scale: bool) -> go.Figure:
    """A line per group in a lane of its own, from the first value to the last.

    one_scale: all lanes from 0 to the largest value of all; else each over its own range.
    """
    values = np.array([measure.values(report, group) for group in groups])
    finite = values[np.isfinite(values)]
    most = float(finite.max()) if finite.size else 1.0
    places = report.places
    members = [plain_text(shorten_middle(member.name, 48)) for member in report.members]
    figure = go.Figure()
    for lane, row in enumerate(values):
        known = np.isfinite(row)
        low, high = (0.0, most) if one_scale else _span(row[known])
        heights = (row - low) / ((high - low) or 1.0) * _LANE_FILLED + (len(groups) - 1 - lane)
        base = float(len(groups) - 1 - lane)
        ends = [float(places[0]), float(places[-1])]
        figure.add_scatter(
            x=ends, y=[base, base], mode="lines", line={"color": GRID, "width": 1}, hoverinfo="skip", meta=in_table(),
        )  # fmt: skip
        figure.add_scatter(
            x=places[known],
            y=heights[known],
            mode="lines+markers" if len(places) <= _MARKED else "lines",
            fill="tonexty" if len(places) > 1 else None,
            fillcolor="rgba(42,120,142,0.15)",
            line={"color": ACCENT, "width": 1.5},
            marker={"size": 4},
            customdata=[
                (members[at], measure.text(float(row[at])) or "not known") for at in np.flatnonzero(known)
            ],
            hovertemplate=f"{plain_text(shorten_middle(groups[lane].name, 48))}<br>%{{customdata[0]}}: "
            "%{customdata[1]}<extra></extra>",
            name=plain_text(groups[lane].name),
            meta=in_table(("layer", "name"), ("checkpoint", "customdata.0"), (measure.title, "customdata.1")),
        )  # fmt: skip
        if known.any():
            first, last = row[known][0], row[known][-1]
            figure.add_annotation(
                text=f"{measure.text(float(first))} → {measure.text(float(last))}",
                x=1.0, xref="paper", xanchor="left", xshift=6, y=base + _LANE_FILLED / 2, showarrow=False,
                font={"size": 11},
            )  # fmt: skip
    figure.update_xaxes(title_text=report.axis, showgrid=False, zeroline=False)
    figure.update_yaxes(
        tickvals=[len(groups) - 1 - lane + _LANE_FILLED / 2 for lane in range(len(groups))],
        ticktext=_names(groups),
        range=[-0.1, len(groups)],
        showgrid=False,
        zeroline=False,
    )
    figure = dressed(figure, height=70 + _LANE_PIXELS * len(groups))
    figure.update_layout(margin={"r": 120})
    return figure


def _span(known: NDArray[np.float64]) -> tuple[float, float]:
    """What a lane reaches over."""
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    short = _LEAST_SPAN * max(abs(low), abs(high)) - (high - low)
    return (low - short / 2, high + short / 2) if short > 0 else (low, high)


def histogram_figure(report: RunReport, group: Group) -> go.Figure:
    """Histograms over time: a column per checkpoint, colour by the logarithm of the share in the bin, with the median
    and what lies between 5 and 95 % as lines. Checkpoints in which a number is not finite have a cross."""
    edges, shares = histogram_of(report, group)
    centres = (edges[1:] + edges[:-1]) / 2
    columns = list(range(len(report.members)))
    members = [plain_text(shorten_middle(member.name, 48)) for member in report.members]
    with np.errstate(divide="ignore"):
        logs = np.where(shares > 0, np.maximum(np.log10(shares), _LEAST_SHARE_LOG10), np.nan)
    powers = list(range(_LEAST_SHARE_LOG10, 1))
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=centres,
            z=_or_none(logs.T),
            zmin=_LEAST_SHARE_LOG10,
            zmax=0,
            colorscale="Viridis",
            customdata=[
                [(members[at], low, high, float(f"{100 * shares[at, row]:.3g}")) for at in columns]
                for row, (low, high) in enumerate(pairwise(edges.tolist()))
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]:.4g} to %{customdata[2]:.4g}: %{customdata[3]:.3g} %"
            "<extra></extra>",
            meta=in_matrix(
                ("from", "customdata.1"),
                ("to", "customdata.2"),
                cells="customdata.3",
                heads="customdata.0",
                says="A row per bin, a column per checkpoint: the share of its numbers in the bin, in %.",
            ),
            hoverongaps=False,
            colorbar={
                "title": {"text": "share"},
                "tickvals": powers,
                "ticktext": [f"{100 * 10.0**power:g} %" for power in powers],
                "thickness": 12,
            },
        )
    )
    for (_, name), line in zip(
        _QUANTILES, quantiles_of(edges, shares, [share for share, _ in _QUANTILES]), strict=True
    ):
        figure.add_scatter(
            x=columns,
            y=_or_none(line),
            mode="lines",
            name=name,
            line={"color": _BAD, **(_MEDIAN if name == "median" else _AROUND)},
            hovertemplate=f"{name}: %{{y:.4g}}<extra></extra>",
        )  # fmt: skip
    bad = np.flatnonzero(np.nan_to_num(series_of(report, group, Measure.NOT_FINITE)) > 0)
    if len(bad):
        count = series_of(report, group, Measure.NOT_FINITE)
        figure.add_scatter(
            x=bad,
            y=[float(edges[-1])] * len(bad),
            mode="markers",
            marker={"symbol": "x", "color": _BAD, "size": 9},
            customdata=[(members[at], f"{int(count[at]):,}") for at in bad],
            hovertemplate="%{customdata[0]}: %{customdata[1]} NaN or infinite<extra></extra>",
        )
    figure.update_xaxes(**_member_axis(report))
    figure.update_yaxes(title_text="value", showgrid=False, zeroline=False)
    return dressed(figure, height=380)


def _or_none(values: NDArray[np.float64]) -> list[Any]:
    """What is not known is a gap."""
    found = values.astype(object)
    found[np.isnan(values)] = None
    listed: list[Any] = found.tolist()
    return listed


def _names(groups: Sequence[Group]) -> list[str]:
    """Short, and each of them once: two rows of one name would be one."""
    found: dict[str, None] = {}
    for group in groups:
        short = plain_text(shorten_middle(group.name, _NAMED))
        while short in found:
            short += " "
        found[short] = None
    return list(found)


def _few_names(groups: Sequence[Group], names: list[str]) -> dict[str, Any]:
    return (
        {} if len(groups) <= _MARKED else {"tickmode": "array", "tickvals": names[:: math.ceil(len(names) / _MARKED)]}
    )


def _member_axis(report: RunReport, begins: int = 0) -> dict[str, Any]:
    """Checkpoints side by side, from one of them on, called by where they stand."""
    count = len(report.members)
    shown = list(range(begins, count, max(1, math.ceil(count / _MOST_TICKS))))
    return {
        "title_text": report.axis,
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [f"{report.members[at].at:.6g}" for at in shown],
        "range": [begins - 0.5, count - 0.5],
        "showgrid": False,
        "zeroline": False,
    }


def _log_scale(values: NDArray[np.float64], zero: str) -> dict[str, Any]:
    """z, its ends and colours: a stretch of grey below the logarithms, for zero."""
    positive = values[np.isfinite(values) & (values > 0)]
    high = math.log10(float(positive.max())) if positive.size else 0.0
    low = max(math.log10(float(positive.min())), high - _MOST_DECADES) if positive.size else -1.0
    low = min(low, high - 0.3)
    bottom = low - (high - low) * _ZERO_SHARE / (1 - _ZERO_SHARE)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.maximum(np.log10(values), low), np.where(values == 0, bottom, np.nan))
    viridis = get_colorscale("Viridis")
    colours = [[0.0, _ZERO], [_ZERO_SHARE / 2, _ZERO]]
    colours += [[_ZERO_SHARE / 2 + (1 - _ZERO_SHARE / 2) * at, colour] for at, colour in viridis]
    ticks = [bottom] if bool((values == 0).any()) else []
    words = [zero] if ticks else []
    powers = range(math.ceil(low), math.floor(high) + 1)
    places = [float(power) for power in powers] if len(powers) > 1 else [low, (low + high) / 2, high]
    return {
        "z": _or_none(logs),
        "zmin": bottom,
        "zmax": high,
        "colorscale": colours,
        "colorbar": {
            "tickvals": [*ticks, *places],
            "ticktext": [*words, *(f"{10.0**place:.2g}" for place in places)],
            "thickness": 12,
        },
    }


def _linear_scale(values: NDArray[np.float64], measure: LayerMeasure) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    most = float(known.max()) if known.size and known.max() > 0 else 1.0
    places = [most * n / 4 for n in range(5)]
    return {
        "z": _or_none(np.where(np.isfinite(values), values, np.nan)),
        "zmin": 0.0,
        "zmax": most,
        "colorscale": "Viridis",
        "colorbar": {
            "tickvals": places,
            "ticktext": [measure.text(place) for place in places],
            "thickness": 12,
        },
    }


def _mark_not_finite(
    figure: go.Figure, report: RunReport, groups: Sequence[Group], names: list[str], members: list[str]
) -> None:
    marks = []
    for name, group in zip(names, groups, strict=True):
        count = np.nan_to_num(series_of(report, group, Measure.NOT_FINITE))
        marks += [(int(at), name, members[at], f"{int(count[at]):,}") for at in np.flatnonzero(count > 0)]
    if marks:
        figure.add_scatter(
            x=[at for at, *_ in marks],
            y=[name for _, name, *_ in marks],
            mode="markers",
            marker={"symbol": "x", "color": _BAD, "size": 9},
            customdata=[(name, member, count) for _, name, member, count in marks],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}: %{customdata[2]} NaN or infinite<extra></extra>",
        )
