"""Curves of measures and a table of how alike maps are, as Plotly figures that suit either theme."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from inspector.render.figure_table import in_matrix
from inspector.render.figures import GRID
from inspector.render.visible import visible

_CLEAR = "rgba(0,0,0,0)"
# The map that is measured stands out; those that know nothing are told apart by their dashes too.
_LINES = (("#2a9d8f", "solid", 3), ("#8c8c8c", "dot", 1.5), ("#c77d2e", "dash", 1.5), ("#6a7fb5", "dashdot", 1.5))
# Blue over white to orange, as the signed maps have it.
_SIGNED = [[0.0, "#2171b5"], [0.5, "#f7f7f7"], [1.0, "#d94801"]]


def curve_figure(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    *,
    title: str,
    x: str,
    y: str,
    lowest: float = 0.0,
    limited: bool = True,
) -> go.Figure:
    """One line for each (name, points); the first is the one that matters. y goes from `lowest` to 1, or where the
    points go if that is not limited."""
    figure = go.Figure()
    for number, (name, points) in enumerate(lines):
        colour, dash, width = _LINES[number % len(_LINES)]
        figure.add_scatter(
            x=[point[0] for point in points],
            y=[point[1] for point in points],
            name=visible(name),
            mode="lines+markers" if len(points) < 15 else "lines",
            line={"color": colour, "dash": dash, "width": width},
            hovertemplate=f"{visible(name)}<br>%{{x:.3g}}: %{{y:.3f}}<extra></extra>",
        )
    figure.update_xaxes(title_text=x, showgrid=False, zeroline=False)
    height = [lowest, 1.02] if limited else None
    figure.update_yaxes(title_text=y, gridcolor=GRID, range=height, zeroline=lowest < 0)
    figure.update_layout(
        title={"text": title, "x": 0},
        height=300,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        paper_bgcolor=_CLEAR,
        plot_bgcolor=_CLEAR,
        showlegend=len(lines) > 1,
        legend={"orientation": "h", "y": -0.28, "x": 0},
    )
    return figure


def matrix_figure(names: Sequence[str], values: Sequence[Sequence[float]]) -> go.Figure:
    """How alike each is to each, from -1 to 1, with the numbers in the cells."""
    figure = go.Figure(
        go.Heatmap(
            x=list(names),
            y=list(names),
            z=[list(row) for row in values],
            zmin=-1,
            zmax=1,
            colorscale=_SIGNED,
            texttemplate="%{z:.2f}",
            hovertemplate="%{y} and %{x}: %{z:.3f}<extra></extra>",
            meta=in_matrix(("method", "y")),
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    figure.update_xaxes(side="top", tickangle=-35, showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_layout(
        height=90 + 34 * len(names),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor=_CLEAR,
        plot_bgcolor=_CLEAR,
    )
    return figure
