"""Reports as Plotly figures: backgrounds are transparent and text takes the page's colour, so that they suit any theme.

A figure only shows: every number in it is a field of a report, or a sum of such fields by module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from inspector.flops.report import CostReport
from inspector.params.report import ParameterReport
from inspector.units import human_bytes, human_count, human_macs, human_share, shorten_middle
from inspector.weights.report import Fingerprint, Histogram

_CLEAR = "rgba(0,0,0,0)"
_ACCENT = "#2a788e"  # the middle of viridis, readable on white and on black
_SCALE = "Viridis"
_GRID = "rgba(128,128,128,0.2)"
_FRAME = "#5b6470"  # dark enough for white labels on either theme
_WHOLE = "whole model"
# A share of 1 in 100,000 is the least that the heat strip tells from nothing.
_LEAST_SHARE_LOG10 = -5
_MOST_LABELS = 40


def histogram_figure(histogram: Histogram, *, logarithmic: bool = False, title: str = "") -> go.Figure:
    """Bars of counts over values. logarithmic: the count axis; empty bins are then gaps."""
    edges = histogram.edges
    figure = go.Figure(
        go.Bar(
            x=[(a + b) / 2 for a, b in pairwise(edges)],
            y=list(histogram.counts),
            width=[b - a for a, b in pairwise(edges)],
            customdata=[
                (f"{a:.4g}", f"{b:.4g}", f"{count:,.0f}")
                for (a, b), count in zip(pairwise(edges), histogram.counts, strict=True)
            ],
            hovertemplate="%{customdata[0]} to %{customdata[1]}: %{customdata[2]} elements<extra></extra>",
            marker={"color": _ACCENT, "line": {"width": 0}},
        )
    )
    figure.update_layout(bargap=0)
    figure.update_xaxes(title_text="value", showgrid=False, zeroline=False)
    figure.update_yaxes(title_text="elements", type="log" if logarithmic else "linear", gridcolor=_GRID)
    return _dressed(figure, height=300, title=title)


def fingerprint_figure(strip: Fingerprint) -> go.Figure:
    """The heat strip: a row per tensor, first layer on top, colour by the logarithm of the share in the bin.

    Bins without elements are left clear. The colour scale is fixed, so that two files can be laid side by side.
    """
    names = list(strip.names)
    centres = [(a + b) / 2 for a, b in pairwise(strip.edges)]
    logs = [[math.log10(share) if share > 0 else None for share in row] for row in strip.shares]
    percent = [[100 * share for share in row] for row in strip.shares]
    powers = list(range(_LEAST_SHARE_LOG10, 1))
    figure = go.Figure(
        go.Heatmap(
            x=centres,
            y=names,
            z=logs,
            customdata=percent,
            zmin=_LEAST_SHARE_LOG10,
            zmax=0,
            colorscale=_SCALE,
            hoverongaps=False,
            hovertemplate="%{y}<br>around %{x:.2f} rms: %{customdata:.3g} %<extra></extra>",
            colorbar={
                "title": {"text": "share"},
                "tickvals": powers,
                "ticktext": [f"{100 * 10.0**power:g} %" for power in powers],
                "thickness": 12,
            },
        )
    )
    shown = names[:: max(1, math.ceil(len(names) / _MOST_LABELS))]
    figure.update_xaxes(title_text="value / rms of its tensor", showgrid=False, zeroline=False)
    figure.update_yaxes(
        type="category",
        autorange="reversed",
        tickmode="array",
        tickvals=shown,
        ticktext=[shorten_middle(name, 32) for name in shown],
        showgrid=False,
    )
    return _dressed(figure, height=min(900, max(220, 90 + 16 * len(names))))


def module_treemap(report: ParameterReport) -> go.Figure:
    """Bytes by module, parameters and buffers together; click to go into a module."""
    nbytes = {m.path: m.parameter_nbytes + m.buffer_nbytes for m in report.modules}
    elements = {m.path: m.parameters + m.buffers for m in report.modules}
    kinds = {m.path: m.kind or "" for m in report.modules}

    def says(path: str, total: int) -> str:
        known = f"{human_count(elements[path])} elements, " if path in elements else ""
        return known + human_bytes(total)

    return _treemap(_own_parts(nbytes), kinds=kinds, says=says)


def macs_treemap(report: CostReport) -> go.Figure:
    """Multiply-accumulates by module; a shared module has all its calls at its own place."""
    own = {m.path: m.own_macs for m in report.modules}
    kinds = {m.path: m.kind for m in report.modules}
    return _treemap(own, kinds=kinds, says=lambda path, total: f"{human_macs(total)} MACs")


def macs_bars(report: CostReport, *, top: int = 20) -> go.Figure:
    """The modules that do most of the work themselves, most first, with their share of the whole."""
    busiest = sorted((m for m in report.modules if m.own_macs), key=lambda m: -m.own_macs)[:top]
    paths = [m.path or _WHOLE for m in busiest]
    figure = go.Figure(
        go.Bar(
            x=[m.own_macs for m in busiest],
            y=paths,
            orientation="h",
            text=[human_share(m.own_macs / report.macs) for m in busiest],
            customdata=[(m.kind, human_macs(m.own_macs), f"{m.own_macs:,}") for m in busiest],
            hovertemplate="%{y}<br>%{customdata[0]}: %{customdata[1]} MACs (%{customdata[2]})<extra></extra>",
            marker={"color": _ACCENT},
        )
    )
    figure.update_xaxes(title_text="MACs", gridcolor=_GRID, zeroline=False)
    figure.update_yaxes(
        type="category",
        autorange="reversed",
        tickmode="array",
        tickvals=paths,
        ticktext=[shorten_middle(path, 32) for path in paths],
    )
    figure.update_layout(bargap=0.25)
    return _dressed(figure, height=90 + 22 * max(3, len(busiest)))


def _own_parts(totals: Mapping[str, int]) -> dict[str, int]:
    """From totals that include children to each module's own part."""
    own = dict(totals)
    for path, total in totals.items():
        if path:
            above = _parent(path)
            while above not in own and above:
                above = _parent(above)
            if above in own:
                own[above] -= total
    # Shared tensors are counted once, so that children never add up to more than their parent; guard all the same.
    return {path: max(0, part) for path, part in own.items()}


def _treemap(own: Mapping[str, int], *, kinds: Mapping[str, str], says: Callable[[str, int], str]) -> go.Figure:
    """own: path to what the module holds itself. Parents that are not listed (containers) are filled in."""
    totals: dict[str, int] = {}
    for path, part in own.items():
        if part <= 0:
            continue
        totals[path] = totals.get(path, 0) + part
        while path:
            path = _parent(path)
            totals[path] = totals.get(path, 0) + part
    paths = sorted(totals, key=lambda p: (p.count("."), bool(p)))
    figure = go.Figure(
        go.Treemap(
            # Plotly's own root is the empty string, so that the whole model needs another name.
            ids=[_id(path) for path in paths],
            parents=[_id(_parent(path)) if path else "" for path in paths],
            labels=[path.rpartition(".")[2] or _WHOLE for path in paths],
            values=[totals[path] for path in paths],
            customdata=[(path or _WHOLE, kinds.get(path, ""), says(path, totals[path])) for path in paths],
            text=[says(path, totals[path]) for path in paths],
            textinfo="label+text",
            hovertemplate="%{customdata[0]} %{customdata[1]}<br>%{customdata[2]}, %{percentRoot:.1%}<extra></extra>",
            branchvalues="total",
            maxdepth=3,
            marker={
                "colors": _treemap_colours(paths, totals),
                "line": {"width": 1, "color": "rgba(128,128,128,0.4)"},
            },
            root={"color": "rgba(128,128,128,0.15)"},
            tiling={"pad": 2},
        )
    )
    return _dressed(figure, height=420)


def _treemap_colours(paths: Sequence[str], totals: Mapping[str, int]) -> list[str]:
    """Viridis by the square root of the share; frames around the first levels stay grey, or they would outshine all."""
    filled = {_parent(path) for path in paths if path}
    # The bright end of the map is left out: white text has to be readable on every tile.
    shares = [0.75 * math.sqrt(totals[path] / totals[""]) for path in paths]
    colours: list[str] = sample_colorscale(_SCALE, shares) if shares else []
    return [
        _FRAME if path in filled and "." not in path else colour for path, colour in zip(paths, colours, strict=True)
    ]


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _id(path: str) -> str:
    return f"model.{path}" if path else "model"


def _dressed(figure: go.Figure, *, height: int, title: str = "") -> go.Figure:
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 36 if title else 8, "b": 8},
        "paper_bgcolor": _CLEAR,
        "plot_bgcolor": _CLEAR,
        "showlegend": False,
    }
    if title:
        layout["title"] = {"text": title, "x": 0}
    figure.update_layout(**layout)
    return figure
