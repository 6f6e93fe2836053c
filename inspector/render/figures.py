"""Reports as Plotly figures: backgrounds are transparent and text takes the page's colour, so that they suit any theme.

A figure only shows: every number in it is a field of a report, or a sum of such fields by module.
"""

from __future__ import annotations

import heapq
import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from inspector.flops.report import CostReport
from inspector.params.report import ParameterReport
from inspector.render.figure_table import in_matrix, in_table
from inspector.render.visible import visible
from inspector.units import human_bytes, human_count, human_macs, human_share, shorten_apart
from inspector.weights.report import Fingerprint, Histogram

_CLEAR = "rgba(0,0,0,0)"
ACCENT = "#2a788e"  # the middle of viridis, readable on white and on black
_SCALE = "Viridis"
GRID = "rgba(128,128,128,0.2)"
_FRAME = "#5b6470"  # dark enough for white labels on either theme
_WHOLE = "whole model"
# A share of 1 in 100,000 is the least that the heat strip tells from nothing.
_LEAST_SHARE_LOG10 = -5
_MOST_LABELS = 40
_STRIP_SAYS = "A row per tensor: the share of its values, in %, around each multiple of its root mean square."
# 20,000 rows of 64 bins are 18 MB on their way to the browser, and a screen has not that many lines.
_MOST_ROWS = 400
_MOST_SIBLINGS = 60
_MOST_TILES = 300
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")


def histogram_figure(histogram: Histogram, *, logarithmic: bool = False, title: str = "") -> go.Figure:
    """Bars of counts over values. logarithmic: the count axis; empty bins are then gaps."""
    edges = histogram.edges
    figure = go.Figure(
        go.Bar(
            x=[(a + b) / 2 for a, b in pairwise(edges)],
            y=list(histogram.counts),
            width=[b - a for a, b in pairwise(edges)],
            customdata=list(pairwise(edges)),
            hovertemplate="%{customdata[0]:.4g} to %{customdata[1]:.4g}: %{y:,.0f} elements<extra></extra>",
            meta=in_table(("from", "customdata.0"), ("to", "customdata.1"), ("elements", "y")),
            marker={"color": ACCENT, "line": {"width": 0}},
        )
    )
    figure.update_layout(bargap=0)
    figure.update_xaxes(title_text="value", showgrid=False, zeroline=False)
    figure.update_yaxes(title_text="elements", type="log" if logarithmic else "linear", gridcolor=GRID)
    return dressed(figure, height=300, title=title)


def fingerprint_figure(strip: Fingerprint, *, labels: int = _MOST_LABELS, width: int = 32) -> go.Figure:
    """The heat strip: a row per tensor, first layer on top, colour by the logarithm of the share in the bin.

    labels: how many rows are named at most, evenly. width: characters of a name.

    Bins without elements are left clear. The colour scale is fixed, so that two files can be laid side by side.
    Above 400 rows neighbours share one, with their mean share.
    """
    rows = bundled(strip)
    names, shares = [plain_text(name) for name in rows.names], rows.shares
    centres = [(a + b) / 2 for a, b in pairwise(strip.edges)]
    logs = [[round(math.log10(share), 3) if share > 0 else None for share in row] for row in shares]
    percent = [[float(f"{100 * share:.3g}") for share in row] for row in shares]
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
            meta=in_matrix(("tensor", "y"), cells="customdata", says=_STRIP_SAYS),
            colorbar={
                "title": {"text": "share"},
                "tickvals": powers,
                "ticktext": [f"{100 * 10.0**power:g} %" for power in powers],
                "thickness": 12,
            },
        )
    )
    shown = names[:: max(1, math.ceil(len(names) / labels))]
    figure.update_xaxes(title_text="value / rms of its tensor", showgrid=False, zeroline=False)
    figure.update_yaxes(
        type="category",
        autorange="reversed",
        tickmode="array",
        tickvals=shown,
        ticktext=[plain_text(name) for name in shorten_apart([html.unescape(name) for name in shown], width)],
        showgrid=False,
    )
    return dressed(figure, height=min(900, max(220, 90 + 16 * len(names))))


def bundled(strip: Fingerprint) -> Fingerprint:
    """At most `_MOST_ROWS` rows: each stands for as many neighbours as it takes, with their mean share."""
    step = math.ceil(len(strip.names) / _MOST_ROWS)
    if step <= 1:
        return strip
    names, rows = [], []
    for start in range(0, len(strip.names), step):
        some = strip.shares[start : start + step]
        more = f" and {len(some) - 1} more" if len(some) > 1 else ""
        names.append(strip.names[start] + more)
        rows.append(tuple(sum(column) / len(some) for column in zip(*some, strict=True)))
    return replace(strip, names=tuple(names), shares=tuple(rows))


def module_treemap(report: ParameterReport) -> go.Figure:
    """Bytes by module, parameters and buffers together; click to go into a module."""
    nbytes = {m.path: m.parameter_nbytes + m.buffer_nbytes for m in report.modules}
    elements = {m.path: m.parameters + m.buffers for m in report.modules}
    kinds = {m.path: m.kind or "" for m in report.modules}

    def says(path: str, total: int) -> str:
        known = f"{human_count(elements[path])} elements, " if path in elements else ""
        return known + human_bytes(total)

    return _treemap(_own_parts(nbytes), kinds=kinds, short=human_bytes, says=says, unit="bytes")


def macs_treemap(report: CostReport) -> go.Figure:
    """Multiply-accumulates by module; a shared module has all its calls at its own place."""
    own = {m.path: m.own_macs for m in report.modules}
    kinds = {m.path: m.kind for m in report.modules}

    def says(path: str, total: int) -> str:
        return f"{human_macs(total)} MACs"

    return _treemap(own, kinds=kinds, short=human_macs, says=says, unit="MACs")


def macs_bars(report: CostReport, *, top: int = 20) -> go.Figure:
    """The modules that do most of the work themselves, most first, with their share of the whole."""
    busiest = sorted((m for m in report.modules if m.own_macs), key=lambda m: -m.own_macs)[:top]
    paths = [plain_text(m.path) or _WHOLE for m in busiest]
    figure = go.Figure(
        go.Bar(
            x=[m.own_macs for m in busiest],
            y=paths,
            orientation="h",
            text=[human_share(m.own_macs / report.macs) for m in busiest],
            customdata=[(m.kind, human_macs(m.own_macs), f"{m.own_macs:,}") for m in busiest],
            hovertemplate="%{y}<br>%{customdata[0]}: %{customdata[1]} MACs (%{customdata[2]})<extra></extra>",
            meta=in_table(("module", "y"), ("kind", "customdata.0"), ("MACs", "x")),
            marker={"color": ACCENT},
        )
    )
    figure.update_xaxes(title_text="MACs", gridcolor=GRID, zeroline=False)
    figure.update_yaxes(
        type="category",
        autorange="reversed",
        tickmode="array",
        tickvals=paths,
        ticktext=shorten_apart(paths, 32),
    )
    figure.update_layout(bargap=0.25)
    return dressed(figure, height=90 + 22 * max(3, len(busiest)))


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


def _treemap(
    own: Mapping[str, int],
    *,
    kinds: Mapping[str, str],
    short: Callable[[int], str],
    says: Callable[[str, int], str],
    unit: str,
) -> go.Figure:
    """own: path to what the module holds itself. Parents that are not listed (containers) are filled in.

    short: a total as it stands on its tile. says: (path, total) in full, for the tooltip. unit: of a total.
    """
    totals: dict[str, int] = {}
    for path, part in own.items():
        if part <= 0:
            continue
        totals[path] = totals.get(path, 0) + part
        while path:
            path = _parent(path)
            totals[path] = totals.get(path, 0) + part
    tiles = _tiles(totals, says)
    figure = go.Figure(
        go.Treemap(
            ids=[tile.id for tile in tiles],
            parents=[tile.parent for tile in tiles],
            labels=[plain_text(tile.label) for tile in tiles],
            values=[tile.total for tile in tiles],
            customdata=[(plain_text(tile.path), plain_text(kinds.get(tile.path, "")), tile.says) for tile in tiles],
            text=[short(tile.total) for tile in tiles],
            textinfo="label+text",
            # Without it the outermost label takes the page's colour, which one theme makes unreadable on the frame.
            textfont={"color": "white"},
            hovertemplate="%{customdata[0]} %{customdata[1]}<br>%{customdata[2]}, %{percentRoot:.1%}<extra></extra>",
            meta=in_table(("module", "customdata.0"), ("kind", "customdata.1"), (unit, "values")),
            branchvalues="total",
            marker={"colors": _treemap_colours(tiles), "line": {"width": 1, "color": "rgba(128,128,128,0.4)"}},
            root={"color": "rgba(128,128,128,0.15)"},
            # In the network's order, as it is read; by size is the table's to show.
            sort=False,
            tiling={"pad": 2, "packing": "binary"},
        )
    )
    # A label that would be smaller than this is no label: the name stands in the tooltip.
    figure.update_layout(uniformtext={"minsize": 9, "mode": "hide"})
    return dressed(figure, height=420)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """One rectangle. parent: an id, "" for the whole. leaf: nothing is drawn inside it."""

    id: str
    parent: str
    path: str
    label: str
    says: str
    total: int
    leaf: bool


def _tiles(totals: Mapping[str, int], says: Callable[[str, int], str]) -> list[_Tile]:
    """The whole first, and each before what is in it.

    A module that holds nothing but one other is left out: its name joins the other's ("module" around everything would
    be a frame around the whole picture). A browser draws some hundreds of tiles at once and not tens of thousands.
    """
    below: dict[str, list[str]] = {}
    for path in totals:
        if path:
            below.setdefault(_parent(path), []).append(path)

    def inmost(path: str) -> str:
        while len(below.get(path, ())) == 1 and totals[below[path][0]] == totals[path]:
            if not path and below[path][0] not in below:
                break
            path = below[path][0]
        return path

    if not totals:
        return []
    # Plotly's own root is the empty string, so that the whole model needs another name.
    whole = inmost("")
    tiles = [
        _Tile(
            id=_id(""),
            parent="",
            path=_WHOLE,
            label=_WHOLE,
            says=says("", totals[""]),
            total=totals[""],
            leaf=whole not in below,
        )
    ]
    # The largest is unfolded first, so that what takes most of the picture is never one rectangle.
    waiting = [(-totals[""], 0, whole)]
    while waiting:
        _, number, path = heapq.heappop(waiting)
        groups = _grouped(below.get(path, []), totals)
        if number and len(tiles) + len(groups) > _MOST_TILES:
            tiles[number] = replace(tiles[number], leaf=True)
            continue
        for group in groups:
            total = sum(totals[child] for child in group.paths)
            if group.says:
                label = path_says = group.says
                if path and group.is_range:
                    path_says = f"{path}.{group.says}"
                tiles.append(
                    _Tile(
                        id=f"{tiles[number].id}/{group.says}",
                        parent=tiles[number].id,
                        path=path_says,
                        label=label,
                        says=says(f"{path}/more", total),
                        total=total,
                        leaf=True,
                    )
                )
                continue
            (child,) = group.paths
            end = inmost(child)
            if end in below:
                heapq.heappush(waiting, (-total, len(tiles), end))
            tiles.append(
                _Tile(
                    id=_id(child),
                    parent=tiles[number].id,
                    path=end,
                    label=end[len(path) + 1 :] if path else end,
                    says=says(end, total),
                    total=total,
                    leaf=end not in below,
                )
            )
    return tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class _Siblings:
    """What one tile stands for. says: its label where they are several, else "". is_range: numbered neighbours."""

    paths: tuple[str, ...]
    says: str = ""
    is_range: bool = False


def _grouped(siblings: Sequence[str], totals: Mapping[str, int]) -> list[_Siblings]:
    """At most some 60 of the modules in one, in their order. Numbered ones in greater number are taken together with
    their neighbours ("0 to 36"), so that equal blocks stay a picture; of others the smallest are one tile, the last."""
    if len(siblings) <= _MOST_SIBLINGS:
        return [_Siblings(paths=(path,)) for path in siblings]
    stems: dict[str, list[tuple[int, str]]] = {}
    for path in siblings:
        match = _NUMBERED.fullmatch(path.rpartition(".")[2])
        if match is not None:
            stems.setdefault(match[1], []).append((int(match[2]), path))
    found: list[_Siblings] = []
    named = sorted(siblings, key=lambda path: -totals[path])
    stem = max(stems, key=lambda one: len(stems[one]), default="")
    if len(stems.get(stem, ())) > _MOST_SIBLINGS // 2:
        numbered = sorted(stems[stem])
        taken = {path for _, path in numbered}
        named = [path for path in named if path not in taken]
        step = math.ceil(len(numbered) / (_MOST_SIBLINGS // 2))
        for start in range(0, len(numbered), step):
            some = numbered[start : start + step]
            says = f"{stem}{some[0][0]} to {some[-1][0]}" if len(some) > 1 else ""
            found.append(_Siblings(paths=tuple(path for _, path in some), says=says, is_range=True))
    room = _MOST_SIBLINGS - len(found)
    found += [_Siblings(paths=(path,)) for path in named[:room]]
    place = {path: number for number, path in enumerate(siblings)}
    found.sort(key=lambda group: place[group.paths[0]])
    if named[room:]:
        found.append(_Siblings(paths=tuple(named[room:]), says=f"and {len(named) - room:,} more"))
    return found


def _treemap_colours(tiles: Sequence[_Tile]) -> list[str]:
    """Viridis by the square root of the share; frames around the first levels stay grey, or they would outshine all."""
    # The bright end of the map is left out: white text has to be readable on every tile.
    shares = [0.5 * math.sqrt(tile.total / tiles[0].total) for tile in tiles]
    colours: list[str] = sample_colorscale(_SCALE, shares) if shares else []
    outer = {_id(""), ""}
    return [
        _FRAME if not tile.leaf and tile.parent in outer else colour
        for tile, colour in zip(tiles, colours, strict=True)
    ]


def plain_text(name: str) -> str:
    """A name from a file for Plotly, which takes <b> and <a href> for markup."""
    return html.escape(visible(name), quote=False)


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _id(path: str) -> str:
    return f"model.{path}" if path else "model"


def dressed(figure: go.Figure, *, height: int, title: str = "") -> go.Figure:
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
