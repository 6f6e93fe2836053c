"""One tensor, and all of them by depth, as Plotly figures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from inspector.health.report import HealthReport
from inspector.health.roles import Role
from inspector.health.spectrum_report import ROUNDING, Spectrum
from inspector.render.figure_table import in_matrix, in_table
from inspector.render.figures import ACCENT, GRID, dressed, plain_text
from inspector.units import shorten_middle
from inspector.weights.histogram import counts_between
from inspector.weights.look import Corner, Filters
from inspector.weights.report import Rows, TensorStatistics
from inspector.weights.rows import row_largest, row_means

# Blue for negative, orange for positive, nothing around zero: told apart by the colour-blind, on either ground.
_SIGNED = [[0.0, "#2166ac"], [0.5, "rgba(128,128,128,0.08)"], [1.0, "#d6604d"]]
_ROLE_COLOURS = {
    Role.CONV: "#2a788e",
    Role.DEPTHWISE: "#5ec962",
    Role.TRANSPOSED: "#7ad151",
    Role.LINEAR: "#d98c21",
    Role.EMBEDDING: "#b5478f",
    Role.RECURRENT: "#8c6bb1",
    Role.NORM_SCALE: "#7f8c8d",
}
_OTHER = "#9aa5ad"
_SYMLOG_BINS = 40
_DECADES = 4.0
_FILTER_PIXELS = 40
_MARKED = 100
_FEW = 10
_EXPONENT = re.compile(r"(?<=e)\+?(-?)0*")  # 1e5, not 1e+05
# Powers of ten with 2 and 5 between them; labels of all powers.
_DENSE_DECADES, _MOST_DECADES = 3, 10


def symlog_figure(statistics: TensorStatistics) -> go.Figure:
    """Counts over the logarithm of the magnitude, to either side of zero: small values are seen beside large ones."""
    edges = _symlog_edges(statistics)
    counts = counts_between(statistics, edges)
    places = list(range(len(counts)))
    figure = go.Figure(
        go.Bar(
            x=places,
            y=counts.tolist(),
            width=1,
            customdata=[(float(a), float(b)) for a, b in pairwise(edges)],
            hovertemplate="%{customdata[0]:.3g} to %{customdata[1]:.3g}: %{y:,.0f} elements<extra></extra>",
            meta=in_table(("from", "customdata.0"), ("to", "customdata.1"), ("elements", "y")),
            marker={"color": ACCENT, "line": {"width": 0}},
        )
    )
    ticks = [*places[:: max(1, len(places) // 8)]]
    figure.update_layout(bargap=0)
    figure.update_xaxes(
        title_text="value, logarithmic to either side of zero",
        tickvals=[t - 0.5 for t in ticks],
        ticktext=[f"{edges[t]:.2g}" for t in ticks],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(title_text="elements", gridcolor=GRID)
    return dressed(figure, height=300)


def _symlog_edges(statistics: TensorStatistics) -> NDArray[np.float64]:
    """From the largest magnitude down to a ten-thousandth of it, one bin around zero, and up again."""
    largest = max(abs(statistics.minimum), abs(statistics.maximum)) if statistics.finite else 1.0
    largest = largest or 1.0
    side = np.geomspace(largest * 10**-_DECADES, largest, _SYMLOG_BINS)
    side[-1] = largest
    return np.concatenate([-side[::-1], side])


def with_initialisation(figure: go.Figure, statistics: TensorStatistics, density: Density) -> go.Figure:
    """The histogram with the curve that this many elements would follow before training."""
    low, high = density.reach
    places = np.linspace(low, high, 200)
    bars = figure.data[0].width
    step = bars[0] if bars else 1.0
    figure.add_scatter(
        x=[low, *places.tolist(), high],
        y=[0.0, *(statistics.finite * step * density.at(places)).tolist(), 0.0],
        mode="lines",
        line={"color": "#d98c21", "width": 2},
        name=density.says,
        hovertemplate=f"{plain_text(density.says)}<extra></extra>",
    )
    figure.data[0].name = "in the file"
    return _with_legend(figure)


class Density:
    """A distribution around zero. family: "uniform" or another, which is drawn as a normal one."""

    def __init__(self, *, uniform: bool, scale: float, says: str) -> None:
        self._uniform, self._scale, self.says = uniform, scale, says

    @property
    def reach(self) -> tuple[float, float]:
        """Where it is drawn from and to."""
        reach = self._scale if self._uniform else 4 * self._scale
        return -reach, reach

    def at(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) -> (n,): the share of elements per unit."""
        if self._uniform:
            return np.full(len(places), 1 / (2 * self._scale))
        scaled: NDArray[np.float64] = np.exp(-0.5 * (places / self._scale) ** 2)
        return scaled / (self._scale * math.sqrt(2 * math.pi))


def rows_figure(rows: Rows) -> go.Figure:
    """Rows by their mean magnitude, weakest first: dead ones are a foot at the left, outliers a peak at the right."""
    means, largest = row_means(rows), row_largest(rows)
    order = np.argsort(means, kind="stable")
    step = max(1, len(order) // 2000)
    order = order[::step]
    share = np.linspace(0, 100, len(order))
    figure = go.Figure(
        [
            go.Scatter(
                x=share,
                y=values[order],
                customdata=order,
                mode="lines",
                name=name,
                line={"color": colour, "width": 2},
                hovertemplate=f"row %{{customdata}}: {name} %{{y:.4g}}<extra></extra>",
                meta=in_table(("row", "customdata"), ("magnitude", "name"), ("value", "y")),
            )
            for values, name, colour in ((largest, "largest", "#d98c21"), (means, "mean", ACCENT))
        ]
    )
    figure.update_xaxes(title_text="rows, weakest first (%)", showgrid=False, zeroline=False)
    positive = bool((means > 0).all())
    figure.update_yaxes(title_text="magnitude", type="log" if positive else "linear", gridcolor=GRID)
    return _with_legend(dressed(figure, height=320))


def spectrum_figure(spectrum: Spectrum) -> go.Figure:
    """Singular values by rank, largest first, both axes logarithmic, and the power law where one was fitted.

    Values below a ten-millionth of the largest are rounding, and left out.
    """
    values = np.frombuffer(spectrum.values, np.float64)
    shown = values[values >= ROUNDING * values[0]]
    ranks = np.arange(1, len(shown) + 1)
    figure = go.Figure(
        go.Scatter(
            x=ranks,
            y=shown,
            mode="lines+markers" if len(shown) <= _MARKED else "lines",
            name="singular values",
            line={"color": ACCENT, "width": 2},
            marker={"size": 5},
            hovertemplate="number %{x:,}: %{y:.4g}<extra></extra>",
        )
    )
    law = spectrum.power_law
    if law is not None:
        ends = np.geomspace(1, law.tail, 50)
        # Of n numbers above x_min, (x / x_min)^(1 - alpha) are above x: the i-th is x_min (i / n)^(-1 / (alpha - 1)).
        squares = law.lowest * (ends / law.tail) ** (-1 / (law.alpha - 1))
        figure.add_scatter(
            x=ends,
            y=np.sqrt(squares * max(spectrum.rows, spectrum.columns)),
            mode="lines",
            name=f"power law, alpha {law.alpha:.2f}",
            line={"color": "#d98c21", "width": 2, "dash": "dash"},
            hovertemplate="fitted: %{y:.4g}<extra></extra>",
        )
    figure.update_xaxes(title_text="number, largest first", gridcolor=GRID, zeroline=False, **_log_ticks(ranks))
    figure.update_yaxes(title_text="singular value", gridcolor=GRID, zeroline=False, **_log_ticks(shown))
    return _with_legend(dressed(figure, height=340))


def _log_ticks(values: NDArray[Any]) -> dict[str, Any]:
    """A logarithmic axis with labels at 1, 2, 5, 10, ...; powers of ten alone, or more, where that suits the range."""
    least, most = float(values.min()), float(values.max())
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = range(1, 10) if most < 10 * least else (1, 2, 5) if high - low <= _DENSE_DECADES else (1,)
    apart = 1 + (high - low) // _MOST_DECADES
    places = [step * 10.0**power for power in range(low - low % apart, high + 1, apart) for step in steps]
    if sum(least <= place <= most for place in places) < 2 and least < most:
        places = [float(f"{place:.3g}") for place in np.linspace(least, most, 4)]
    return {
        "type": "log",
        "tickvals": places,
        "ticktext": [_EXPONENT.sub(r"\1", f"{p:,.6g}" if p < 1e6 else f"{p:.2g}") for p in places],
    }


def corner_figure(corner: Corner) -> go.Figure:
    """A corner of the tensor as a heat map around zero."""
    values = np.frombuffer(corner.values, np.float32).reshape(corner.rows, corner.columns).astype(np.float64)
    finite = np.abs(values[np.isfinite(values)])
    reach = float(finite.max()) if finite.size else 1.0
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=-(reach or 1.0),
            zmax=reach or 1.0,
            colorscale=_SIGNED,
            hoverongaps=False,
            hovertemplate="[%{y}, %{x}]: %{z:.4g}<extra></extra>",
            colorbar={"thickness": 12},
            meta=in_matrix(("row", "y")),
        )
    )
    figure.update_xaxes(title_text="column", showgrid=False, zeroline=False)
    figure.update_yaxes(title_text="row", autorange="reversed", showgrid=False, zeroline=False)
    return dressed(figure, height=min(480, 120 + 8 * corner.rows))


def filters_picture(filters: Filters) -> NDArray[np.uint8]:
    """(height, width, 3): the filters side by side, each stretched over its own range, on grey."""
    values = np.frombuffer(filters.values, np.float32)
    values = values.reshape(filters.count, filters.height, filters.width, filters.channels).astype(np.float64)
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    reach = np.abs(values).max(axis=(1, 2, 3), keepdims=True)
    pixels = np.rint(127.5 + 127.5 * values / np.where(reach > 0, reach, 1.0)).astype(np.uint8)
    pixels = np.repeat(pixels, 3, axis=3) if filters.channels == 1 else pixels
    zoom = max(1, _FILTER_PIXELS // max(filters.height, filters.width))
    pixels = pixels.repeat(zoom, axis=1).repeat(zoom, axis=2)
    across = math.ceil(math.sqrt(filters.count * 2))
    down = math.ceil(filters.count / across)
    tall, wide = pixels.shape[1] + 2, pixels.shape[2] + 2
    sheet = np.full((down * tall, across * wide, 3), 127, np.uint8)
    for n, one in enumerate(pixels):
        top, left = n // across * tall + 1, n % across * wide + 1
        sheet[top : top + one.shape[0], left : left + one.shape[1]] = one
    return sheet


def depth_figure(report: HealthReport, sick: Sequence[str] = ()) -> go.Figure:
    """The RMS of each weight by its place in the file, coloured by role; sick ones ringed."""
    roles = dict(report.roles)
    measured = [s for s in report.weights.tensors if len(s.shape) >= 2 and s.finite and s.rms > 0]
    marked = set(sick)
    figure = go.Figure()
    for role in dict.fromkeys(roles.get(s.name, Role.OTHER) for s in measured):
        own = [(n, s) for n, s in enumerate(measured) if roles.get(s.name, Role.OTHER) is role]
        figure.add_scatter(
            x=[n for n, _ in own],
            y=[s.rms for _, s in own],
            mode="markers",
            name=role.value,
            customdata=[plain_text(shorten_middle(s.name, 60)) for _, s in own],
            marker={"color": _ROLE_COLOURS.get(role, _OTHER), "size": 7},
            hovertemplate="%{customdata}<br>RMS %{y:.4g}<extra></extra>",
            meta=in_table(("tensor", "customdata"), ("role", "name"), ("root mean square", "y"), order="x"),
        )
    ringed = [(n, s.rms) for n, s in enumerate(measured) if s.name in marked]
    if ringed:
        figure.add_scatter(
            x=[n for n, _ in ringed],
            y=[rms for _, rms in ringed],
            mode="markers",
            name="an error or a warning",
            marker={"color": "#c0392b", "size": 13, "symbol": "circle-open", "line": {"width": 2}},
            hoverinfo="skip",
            meta=in_table(),
        )
    few = {"dtick": 1} if len(measured) <= _FEW else {}
    figure.update_xaxes(title_text="weights, in the file's order", showgrid=False, zeroline=False, **few)
    ticks = _log_ticks(np.asarray([s.rms for s in measured])) if measured else {"type": "log"}
    figure.update_yaxes(title_text="root mean square", gridcolor=GRID, **ticks)
    return _with_legend(dressed(figure, height=340))


def _with_legend(figure: go.Figure) -> go.Figure:
    """The names of the lines and points, above them."""
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"}, margin={"t": 40})
    return figure
