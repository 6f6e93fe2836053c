"""A comparison as figures: how far each layer moved, and two histograms over each other."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from inspector.compare.report import Diff, Relation, TensorDiff
from inspector.render.figure_table import in_table
from inspector.render.figures import ACCENT, GRID, dressed, plain_text
from inspector.units import human_distance, human_share, shorten_middle
from inspector.weights.histogram import histogram
from inspector.weights.report import TensorStatistics

# Told apart without their hue as well: what is the same is the lightest.
COLOURS = {
    Relation.SAME: "rgba(128,128,128,0.35)",
    Relation.CAST: "#7fa8d1",
    Relation.TRUNCATED: "#5276a7",
    Relation.CHANGED: "#d98c21",
    Relation.RESHAPED: "#a35fb5",
    Relation.ADDED: "#3c9a5f",
    Relation.REMOVED: "#c2452d",
    Relation.UNREAD: "#7a1f1f",
}
_SECOND = "#d98c21"
# Below this share a change is drawn as high as it.
_LEAST = 1e-9
_MOST = 3000
_TICKS = (1e-6, 1e-4, 1e-2, 1.0)
# As high as what has no finite share is drawn: changed from zeros, or to what is not finite.
_ENDLESS = 1e3
_BINS = 96


def strip_figure(diff: Diff) -> go.Figure:
    """A bar per tensor in the first file's order: its relative L2 change, logarithmic, coloured by what it is."""
    figure = go.Figure()
    shown = diff.tensors[:_MOST]
    for relation in Relation:
        places = [n for n, tensor in enumerate(shown) if tensor.relation is relation]
        if not places:
            continue
        figure.add_bar(
            x=places,
            y=[_height(shown[n]) for n in places],
            # Wide enough to be seen among thousands.
            width=max(1.0, len(shown) / 240),
            name=f"{relation} ({len(places):,})",
            marker={"color": COLOURS[relation], "line": {"width": 0}},
            customdata=[(plain_text(shorten_middle(shown[n].name, 70)), _says(shown[n])) for n in places],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            meta=in_table(("tensor", "customdata.0"), ("change", "customdata.1"), order="x"),
        )
    figure.update_layout(bargap=0, barmode="overlay")
    figure.update_xaxes(title_text="tensors, in the first file's order", showgrid=False, zeroline=False)
    endless = any(_height(tensor) == _scale(_ENDLESS) for tensor in shown)
    ticks = {_scale(d): human_distance(d) for d in _TICKS} | ({_scale(_ENDLESS): "∞"} if endless else {})
    figure.update_yaxes(
        title_text="relative L2",
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        gridcolor=GRID,
        range=[0, _scale(_ENDLESS if endless else 10.0)],
    )
    figure = dressed(figure, height=300)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0})
    return figure


def overlay_figure(a: TensorStatistics, b: TensorStatistics, *, logarithmic: bool) -> go.Figure:
    """Both histograms over common bins, as lines."""
    known = [s for s in (a, b) if s.finite]
    low, high = (min(s.minimum for s in known), max(s.maximum for s in known)) if known else (0.0, 1.0)
    span = (low, high) if low < high else (low - 0.5, high + 0.5)
    figure = go.Figure()
    for statistics, name, colour in ((a, "first", ACCENT), (b, "second", _SECOND)):
        found = histogram(statistics, bins=_BINS, span=span)
        figure.add_scatter(
            x=[(x + y) / 2 for x, y in zip(found.edges, found.edges[1:], strict=False)],
            y=list(found.counts),
            mode="lines",
            line={"shape": "hvh", "color": colour, "width": 2},
            name=name,
            hovertemplate="%{x:.4g}: %{y:,.0f} elements<extra>" + name + "</extra>",
            meta=in_table(("file", "name"), ("around", "x"), ("elements", "y")),
        )
    figure.update_xaxes(title_text="value", showgrid=False, zeroline=False)
    figure.update_yaxes(title_text="elements", type="log" if logarithmic else "linear", gridcolor=GRID)
    figure = dressed(figure, height=300)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0})
    return figure


def _height(tensor: TensorDiff) -> float:
    if tensor.relation is Relation.SAME:
        # A sliver, so that it can be pointed at.
        return 0.12
    if tensor.numbers is None:
        return _scale(1.0)
    relative = tensor.numbers.relative
    odd = tensor.numbers.became_non_finite or not math.isfinite(relative)
    return _scale(_ENDLESS if odd else min(relative, 10.0))


def _scale(relative: float) -> float:
    """Decades above the least, and a bit for what is below it."""
    return 0.12 + max(0.0, math.log10(max(relative, _LEAST)) - math.log10(_LEAST))


def _says(tensor: TensorDiff) -> str:
    if tensor.numbers is None:
        return plain_text(tensor.note or str(tensor.relation))
    changed = human_share(tensor.numbers.changed / tensor.numbers.n) if tensor.numbers.n else "0 %"
    new = tensor.numbers.became_non_finite
    odd = f", {abs(new):,} {'more' if new > 0 else 'fewer'} NaN or infinite" if new else ""
    moved = human_distance(tensor.numbers.relative) or "unknown"
    return f"{tensor.relation}: relative L2 {moved}, {changed} of its elements{odd}"
