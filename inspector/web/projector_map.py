"""A map, and what can be asked of it: colours, a search, the nearest to one point, tables of what was chosen, files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.projector.neighbours import Metric
from inspector.projector.report import Neighbour, Points, Projection
from inspector.render.json import as_json
from inspector.render.projection import (
    answer,
    metadata_tsv,
    neighbours_csv,
    points_csv,
    projection_plain,
    sentences,
    title_of,
    vectors_tsv,
)
from inspector.render.projection_figure import LABEL, MARKED, NORM, colours_for, drawn_places, projection_figure
from inspector.units import counted
from inspector.web.charts import draw_chart
from inspector.web.guard import said
from inspector.web.text import escaped, plain, visible
from inspector.web.trees import table_height

_COLOURS = {
    NORM: "norm", LABEL: "name", MARKED: "dead or untrained", "apart": "standing apart", "cluster": "group",
    "one colour": "one colour",
}  # fmt: skip
_TABLE_ROWS = 1000
# As text some 10 bytes each, twice in memory.
_ZIP_NUMEL = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A map with what it is of. near: the points nearest to a number, by a metric. vectors: what was projected. key: of
    this page's boxes. sprites: pictures (data addresses) by place."""

    projection: Projection
    near: Callable[[int, str], tuple[Neighbour, ...]]
    vectors: Callable[[], Points]
    key: str
    sprites: Mapping[int, str] | None = None


def show_map(source: Source, top: DeltaGenerator) -> None:
    """The answer, in its place above the choices; the map, and what was chosen on it."""
    found = source.projection
    top.html(f'<p class="mi-answer">{escaped(answer(found))}</p>')
    _draw(source)
    for says in sentences(found):
        st.caption(plain(says))
    _downloads(source)


@st.fragment
def _draw(source: Source) -> None:
    """A click redraws this part only."""
    found = source.projection
    left, right = st.columns([1, 2], vertical_alignment="bottom")
    ways = colours_for(found)
    colour = left.selectbox(
        "Colour", ways, format_func=_colour_name, key="colour", bind="query-params",
        index=ways.index(MARKED) if found.marked.any() else ways.index(LABEL) if LABEL in ways else 0,
    )  # fmt: skip
    words = right.text_input(
        "Find", key="find", bind="query-params", placeholder=f"part of a name, or a {found.noun}'s number",
        icon=":material/search:",
    )  # fmt: skip
    hits = search(found, words or "")
    if words:
        st.caption(f"{counted(len(hits), found.noun)} found.")
    figure = projection_figure(
        found, colour=colour if colour in ways else ways[0], highlighted=hits, sprites=source.sprites
    )
    flat = found.components == 2
    shape = f"{found.method}-{found.components}-{found.seed}-{found.name!a}-{colour}-{words}"
    event: Any = draw_chart(
        figure,
        key=f"{source.key}-{shape}",
        name="projection",
        bar_without=("autoScale2d",),
        selection_mode=("points", "box", "lasso") if flat else (),
        alt=f"{found.method} of {visible(found.name)}, a point for each {found.noun}",
    )
    drawn = len(drawn_places(found, hits))
    if drawn < found.count:
        st.caption(
            f"{drawn:,} of {found.count:,} points can be chosen, those that stand out among them; the grey behind is "
            "all of them. Find, neighbours and files know all."
        )
    chosen = chosen_places(event, found.count) if flat else []
    with said():
        if len(chosen) > 1:
            _table(found, chosen, f"{counted(len(chosen), found.noun)} chosen", key=f"{source.key}-chosen")
        else:
            _neighbours(source, chosen or (hits if len(hits) == 1 else []))
    if len(chosen) < 2:
        for flags, name in ((found.apart, "apart"), (found.marked, found.marked_as)):
            places = np.flatnonzero(flags).tolist()
            if places:
                label = f"{counted(len(places), found.noun)} {'standing apart' if name == 'apart' else name}"
                with st.expander(label, icon=":material/table_rows:"):
                    _table(found, places, "", key=f"{source.key}-{name}")


def _colour_name(way: str) -> str:
    return _COLOURS[way]


def search(found: Projection, words: str) -> list[int]:
    """Places of the points of that number, or whose name holds the words; capitals do not count."""
    wanted = words.strip().lower()
    if not wanted:
        return []
    if found.labels:
        hits = [at for at, label in enumerate(found.labels) if wanted in label.lower()]
        if hits:
            return hits
    if not wanted.isdecimal() or len(wanted) > 12:
        return []
    return np.flatnonzero(found.numbers == int(wanted)).tolist()


def chosen_places(event: Any, count: int) -> list[int]:
    """What was clicked, or lies in the lasso; what a browser says is only believed where it can be true."""
    points = getattr(getattr(event, "selection", None), "points", None) or []
    places: dict[int, None] = {}
    for point in points:
        data = point.get("customdata") if isinstance(point, dict) else None
        # One that is not a list of its own comes as an object with numbered keys.
        value = (
            data.get("0") if isinstance(data, dict) else data[0] if isinstance(data, list | tuple) and data else data
        )
        if isinstance(value, int | float) and 0 <= value < count:
            places.setdefault(int(value))
    return sorted(places)


def _neighbours(source: Source, chosen: Sequence[int]) -> None:
    found = source.projection
    if not chosen:
        if found.components == 3:
            st.caption(f"Find a {found.noun} to see what is nearest to it; on the flat map points can be chosen, too.")
            return
        st.caption(
            f"Choose a {found.noun} on the map, or find one, to see what is nearest to it; draw a lasso or a box for a "
            "table."
        )
        return
    at = chosen[0]
    title, number = title_of(found, at), int(found.numbers[at])
    left, right = st.columns([3, 1.4], vertical_alignment="bottom")
    left.markdown(f"**Nearest to {plain(title)}** ({plain(f'{found.noun} {number:,}')})")
    metric = right.segmented_control(
        "Distance", [one.value for one in Metric], default=Metric.COSINE.value, required=True, key="metric",
        bind="query-params", label_visibility="collapsed", width="stretch",
    )  # fmt: skip
    near = source.near(number, str(metric))
    places = {int(n): at for at, n in enumerate(found.numbers)}
    shown = [replace(one, place=places[one.number]) for one in near if one.number in places]
    frame = pd.DataFrame(
        {
            found.noun.capitalize(): [one.number for one in shown],
            **({"Name": [visible(title_of(found, one.place)) for one in shown]} if found.labels else {}),
            "Distance": [one.distance for one in shown],
            "Norm": [float(found.norms[one.place]) for one in shown],
        }
    )
    st.dataframe(frame, hide_index=True, column_config=_NUMBERS, key=f"{source.key}-near", alt=f"Nearest to {title}")
    if len(shown) < len(near):
        st.caption(f"{len(near) - len(shown)} nearer ones are not on this map, which is of a sample.")
    st.download_button(
        "Neighbours as CSV", lambda: neighbours_csv(found, shown, str(metric)), "neighbours.csv", "text/csv",
        on_click="ignore", key=f"{source.key}-near-csv",
    )  # fmt: skip


_NUMBERS = {name: st.column_config.NumberColumn(format="%.4g") for name in ("Distance", "Norm")}


def _table(found: Projection, places: Sequence[int], heading: str, *, key: str) -> None:
    if heading:
        st.markdown(f"**{plain(heading)}**")
    shown = list(places[:_TABLE_ROWS])
    frame = pd.DataFrame(
        {
            found.noun.capitalize(): found.numbers[shown],
            **({"Name": [visible(found.labels[at]) for at in shown]} if found.labels else {}),
            "Norm": found.norms[shown],
            "Apart": found.apart[shown],
            **({found.marked_as.capitalize(): found.marked[shown]} if found.marked_as else {}),
            **({"Group": found.clusters[shown]} if found.clusters is not None else {}),
        }
    )
    st.dataframe(
        frame, hide_index=True, column_config=_NUMBERS, key=f"{key}-table", height=table_height(len(frame), 360),
        alt=heading or "Points",
    )  # fmt: skip
    if len(places) > len(shown):
        st.caption(f"The first {len(shown):,} of {len(places):,}; the table as CSV has all.")
    st.download_button(
        "Table as CSV", lambda: points_csv(found, places), "points.csv", "text/csv", on_click="ignore", key=f"{key}-csv"
    )


def _downloads(source: Source) -> None:
    found = source.projection
    with st.container(horizontal=True):
        st.download_button(
            "All points as CSV", lambda: points_csv(found), "projection.csv", "text/csv", on_click="ignore",
            key=f"{source.key}-csv",
        )  # fmt: skip
        st.download_button(
            "JSON", lambda: as_json(projection_plain(found)), "projection.json", "application/json", on_click="ignore",
            key=f"{source.key}-json",
        )  # fmt: skip
        small = found.count * found.dims <= _ZIP_NUMEL
        st.download_button(
            "For TensorBoard's projector (TSV)", lambda: projector_zip(source), "projector.zip", "application/zip",
            on_click="ignore", key=f"{source.key}-tsv", disabled=not small,
            help="vectors.tsv and metadata.tsv."
            if small
            else f"{found.count * found.dims:,} numbers are too many for a download; inspector project writes them.",
        )  # fmt: skip


def projector_zip(source: Source) -> bytes:
    """Vectors and metadata of the points on the map, as the projector's own Load button takes them."""
    found, points = source.projection, source.vectors()
    kept = np.searchsorted(points.numbers, found.numbers)
    same = replace(points, values=points.values[kept], numbers=found.numbers, marked=found.marked, labels=found.labels)
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vectors.tsv", "".join(vectors_tsv(same)))
        archive.writestr("metadata.tsv", "".join(metadata_tsv(found)))
    return raw.getvalue()
