"""A projection as a Plotly figure: a point for each row, coloured by what is known of it.

Not Plotly's WebGL points: they compile code from text, which the app's content security policy forbids (`eval`), so
that a browser shows nothing of them. Each point is an element of the page instead, and of these a browser moves some
thousands: above that a sample can be chosen, over a shade of all points.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from inspector.projector.project import even_sample
from inspector.projector.report import Projection
from inspector.render.figure_table import in_table
from inspector.render.figures import ACCENT, GRID, dressed, plain_text
from inspector.render.overlay import png_bytes
from inspector.render.projection import title_of
from inspector.units import human_share, shorten_middle

#: Points up to which the map may be drawn in three directions.
MOST_3D = 5000
#: Points that can be chosen on the flat map: a box around them takes Chromium 2 s, and 60 s around 50,000.
MOST_DRAWN = 5000
# Cells of the shade, on either side.
_CELLS = 280
# Told apart by the colour-blind, on white and on black (Wong 2011, Nature Methods 8:441, and lighter ones).
_COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#b8a800",
    "#8c6bb1",
    "#7a5230",
    "#7f8c8d",
)
_OTHER = "#9aa5ad"
_LOUD = "#d55e00"
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross")
_SYMBOLS_3D = ("circle", "diamond", "square", "cross", "x")
_GROUPS = 20
# Up to so many points their names stand beside them.
_NAMED = 40
_FOUND_NAMED = 30
_SMALL = 2000

PLAIN, NORM, LABEL, CLUSTER, MARKED, APART = "one colour", "norm", "label", "cluster", "marked", "apart"


def colours_for(found: Projection) -> list[str]:
    """By what its points can be coloured, the likeliest first."""
    labelled = bool(found.labels) and len(set(found.labels)) > 1
    ways = [NORM, *([MARKED] if found.marked_as else []), APART]
    ways += [LABEL] if labelled else []
    ways += [CLUSTER] if found.clusters is not None else []
    return [*ways, PLAIN]


def projection_figure(
    found: Projection,
    *,
    colour: str = NORM,
    highlighted: Sequence[int] = (),
    sprites: Mapping[int, str] | None = None,
) -> go.Figure:
    """The map; in three directions where the projection has them. Each point's customdata is its place.

    highlighted: places to ring and name. sprites: pictures (data addresses) by place, drawn instead of points.
    """
    figure = go.Figure()
    drawn = drawn_places(found, highlighted)
    named = found.count <= _NAMED and bool(found.labels) and not sprites
    if len(drawn) < found.count:
        _add_shade(figure, found)
    if colour == NORM:
        figure.add_trace(_trace(found, drawn, name="", marker=_by_norm(found, drawn), named=named))
    else:
        for n, (name, places, fill) in enumerate(_groups(found, colour)):
            symbols = _SYMBOLS_3D if found.components == 3 else _SYMBOLS
            marker = {"color": fill, "symbol": symbols[n // len(_COLOURS) % len(symbols)]}
            kept = np.intersect1d(places, drawn)
            figure.add_trace(_trace(found, kept, name=name, marker=marker, named=named))
    if len(highlighted):
        figure.add_trace(_highlight(found, np.asarray(highlighted)))
    if sprites and found.components == 2:
        _add_sprites(figure, found, sprites)
    _axes(figure, found)
    dressed(figure, height=560)
    if colour not in (NORM, PLAIN):
        # Above the map lie Plotly's own buttons.
        legend = {"orientation": "h", "y": -0.12, "yanchor": "top", "itemsizing": "constant"}
        figure.update_layout(showlegend=True, legend=legend)
    # Without a key of its own a redraw would throw away how far somebody has zoomed in.
    figure.update_layout(
        uirevision=f"{found.name}-{found.method}-{found.seed}",
        dragmode="pan",
        hovermode="closest",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": _OTHER, "activecolor": ACCENT},
        margin={"t": 34},
    )
    if found.components == 3:
        figure.update_layout(dragmode="orbit")
    return figure


def drawn_places(found: Projection, wanted: Sequence[int] = ()) -> NDArray[np.int64]:
    """Places of the points that can be chosen: all, or those wanted, apart and marked, and a sample of the others.

    In three directions all are drawn.
    """
    if found.count <= MOST_DRAWN or found.components == 3:
        return np.arange(found.count, dtype=np.int64)
    first = np.zeros(found.count, bool)
    # Half of the room at most, or a vocabulary that was hardly trained would show nothing else.
    for flags in (np.isin(np.arange(found.count), wanted), found.apart, found.marked):
        more = np.flatnonzero(flags & ~first)
        room = MOST_DRAWN // 2 - int(first.sum())
        first[more[even_sample(len(more), max(0, room))]] = True
    for others in (np.flatnonzero(~first & ~found.marked & ~found.apart), np.flatnonzero(~first)):
        left = others[~first[others]]
        first[left[even_sample(len(left), MOST_DRAWN - int(first.sum()))]] = True
    return np.flatnonzero(first).astype(np.int64)


def _add_shade(figure: go.Figure, found: Projection) -> None:
    """All points as a picture behind those that are drawn: the more in a place, the darker."""
    low, high = found.coordinates[:, :2].min(axis=0), found.coordinates[:, :2].max(axis=0)
    wide = np.where(high > low, high - low, 1.0)
    cells = np.minimum(((found.coordinates[:, :2] - low) / wide * _CELLS).astype(np.int64), _CELLS - 1)
    counts = np.bincount(cells[:, 1] * _CELLS + cells[:, 0], minlength=_CELLS**2).reshape(_CELLS, _CELLS)
    logs = np.log1p(counts)
    pixels = np.full((_CELLS, _CELLS, 4), 128, np.uint8)
    pixels[..., 3] = np.rint(170 * logs / logs.max())
    pixels[..., 3][counts > 0] = np.maximum(pixels[..., 3][counts > 0], 60)
    # Row 0 of a picture is its top.
    address = "data:image/png;base64," + base64.b64encode(png_bytes(pixels[::-1])).decode()
    figure.add_layout_image(
        source=address, x=float(low[0]), y=float(high[1]), sizex=float(wide[0]), sizey=float(wide[1]),
        xref="x", yref="y", sizing="stretch", layer="below",
    )  # fmt: skip


def _trace(found: Projection, places: NDArray[np.int64], *, name: str, marker: dict[str, Any], named: bool) -> Any:
    size = 8 if found.count <= _SMALL else 5
    titles = [plain_text(shorten_middle(title_of(found, int(at)), 40)) for at in places]
    norms = [float(f"{norm:.4g}") for norm in found.norms[places]]
    common: dict[str, Any] = {
        "mode": "markers+text" if named else "markers",
        "name": plain_text(name),
        "customdata": [[int(at), norm] for at, norm in zip(places, norms, strict=True)],
        "text": titles,
        "marker": {"size": size, "opacity": 0.85, "line": {"width": 0}, **marker},
        "hovertemplate": "%{text}<br>norm %{customdata[1]}<extra></extra>",
        "meta": _columns(found),
    }
    x, y = found.coordinates[places, 0], found.coordinates[places, 1]
    if found.components == 3:
        small = {**common["marker"], "size": max(2, size // 2)}
        return go.Scatter3d(x=x, y=y, z=found.coordinates[places, 2], **{**common, "marker": small})
    return go.Scatter(x=x, y=y, textposition="top center", **common)


def _columns(found: Projection) -> dict[str, Any]:
    axes = [(f"direction {n}", axis) for n, axis in enumerate("xyz"[: found.components], start=1)]
    return in_table((found.noun, "text"), *axes, ("norm", "customdata.1"), order="customdata.0")


def _by_norm(found: Projection, places: NDArray[np.int64]) -> dict[str, Any]:
    norms = found.norms[places]
    low, high = (float(np.quantile(found.norms, q)) for q in (0.01, 0.99))
    bar = {"title": {"text": "norm"}, "thickness": 12, "outlinewidth": 0}
    scale = {"colorscale": "Viridis", "cmin": low, "cmax": high if high > low else low + 1.0, "showscale": True}
    return {"color": norms, "colorbar": bar, **scale}


def _groups(found: Projection, colour: str) -> list[tuple[str, NDArray[np.int64], str]]:
    """(name, places, colour) of each, the one to be seen last, so that it lies on top."""
    if colour in (MARKED, APART):
        flags = found.marked if colour == MARKED else found.apart
        name = found.marked_as if colour == MARKED else "apart"
        parts = [("the others", np.flatnonzero(~flags), ACCENT), (name, np.flatnonzero(flags), _LOUD)]
        return [(f"{says} ({len(places):,})", places, fill) for says, places, fill in parts if len(places)]
    if colour == CLUSTER and found.clusters is not None:
        keys = [f"cluster {number}" for number in found.clusters.tolist()]
        order = sorted(set(keys), key=lambda key: int(key.rpartition(" ")[2]))
    elif colour == LABEL and found.labels:
        keys = list(found.labels)
        order = [key for key, _ in Counter(key for key in keys if key).most_common(_GROUPS)]
    else:
        return [("", np.arange(found.count), ACCENT)]
    known = {key: n for n, key in enumerate(order)}
    which = np.array([known.get(key, -1) for key in keys])
    found_groups = [("others", np.flatnonzero(which < 0), _OTHER)] if (which < 0).any() else []
    for n, key in enumerate(order):
        places = np.flatnonzero(which == n)
        title = shorten_middle(key, 24)
        many = f" ({len(places):,})" if len(places) > 1 else ""
        found_groups.append((f"{title}{many}", places, _COLOURS[n % len(_COLOURS)]))
    return found_groups


def _highlight(found: Projection, places: NDArray[np.int64]) -> Any:
    few = len(places) <= _FOUND_NAMED
    common = {
        "mode": "markers+text" if few else "markers",
        "text": [plain_text(shorten_middle(title_of(found, int(at)), 30)) for at in places],
        "customdata": [[int(at), float(f"{found.norms[at]:.4g}")] for at in places],
        "showlegend": False,
        "hovertemplate": "%{text}<br>norm %{customdata[1]}<extra></extra>",
        "name": "found",
        "meta": in_table(),
    }
    x, y = found.coordinates[places, 0], found.coordinates[places, 1]
    if found.components == 3:
        marker = {"size": 7, "color": _LOUD, "symbol": "circle-open"}
        return go.Scatter3d(x=x, y=y, z=found.coordinates[places, 2], marker=marker, **common)
    marker = {"size": 15, "color": "rgba(0,0,0,0)", "line": {"width": 2, "color": _LOUD}}
    return go.Scatter(x=x, y=y, textposition="top center", marker=marker, **common)


def _add_sprites(figure: go.Figure, found: Projection, sprites: Mapping[int, str]) -> None:
    """Pictures of one size in the units of the map, and room for them at its edges."""
    places = found.coordinates[:, :2]
    low, high = places.min(axis=0), places.max(axis=0)
    span = float(max(high - low)) or 1.0
    side = span / max(8.0, min(24.0, 2.5 * len(sprites) ** 0.5))
    for at, address in sprites.items():
        figure.add_layout_image(
            source=address, x=places[at, 0], y=places[at, 1], sizex=side, sizey=side,
            xref="x", yref="y", xanchor="center", yanchor="middle", layer="below",
        )  # fmt: skip
    figure.update_xaxes(range=[float(low[0]) - side, float(high[0]) + side])
    figure.update_yaxes(range=[float(low[1]) - side, float(high[1]) + side])


def _axes(figure: go.Figure, found: Projection) -> None:
    names = [f"direction {n} ({human_share(share)})" for n, share in enumerate(found.shares, start=1)]
    names += [""] * (found.components - len(names))
    plain = {"showticklabels": bool(found.shares), "zeroline": False, "gridcolor": GRID}
    if found.components == 3:
        axes = {
            f"{axis}axis": {"title": {"text": name}, "backgroundcolor": "rgba(0,0,0,0)", **plain}
            for axis, name in zip("xyz", names, strict=True)
        }
        figure.update_layout(scene={"aspectmode": "data", **axes})
        return
    figure.update_xaxes(title_text=names[0], **plain)
    # One unit is as long across as up: distances on the map are what it shows.
    figure.update_yaxes(title_text=names[1], scaleanchor="x", scaleratio=1, **plain)
