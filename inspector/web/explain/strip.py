"""What came of a run: the strip, its curves, what was left out, and what can be taken home."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from PIL import Image

from inspector.cam.exporting.blend import OPACITY
from inspector.cam.report import Explanation
from inspector.cam.series import Stage, on_one_scale
from inspector.checkpoint.training_place import axis_of
from inspector.jobs.asked import RunMade, StripAsked
from inspector.jobs.job import Job
from inspector.render.colour_maps import colour_table
from inspector.render.curves import curve_figure
from inspector.render.explained_table import Row, row_of, row_of_error, table_csv
from inspector.render.json import as_json
from inspector.render.overlay import overlay
from inspector.render.page_words import in_page_words
from inspector.render.strip import COLUMNS, strip_columns, strip_lines
from inspector.web import jobs
from inspector.web.charts import draw_chart
from inspector.web.explain import sprites
from inspector.web.explain.answer import NAMES_FILE, names_option
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import Picture, for_display
from inspector.web.explain.several import download_buttons
from inspector.web.explain.view import scale
from inspector.web.text import escaped, plain

if TYPE_CHECKING:
    from inspector.cam.exporting.request import Request

OWN, COMMON = "each map by its own highest", "one scale for all"
THRESHOLD = 0.5
_SIDE = 320


@st.fragment
def show(found: RunMade, subject: Subject, names: tuple[str, ...], target: int | None, threads: int) -> None:
    """names: of the classes, as the visitor has them. target: the class asked about, None for the best of each.
    threads: that torch computes with."""
    stages, agreement = found.stages, found.agreement
    for stage in stages:
        if stage.error is not None:
            hint = f" {plain(in_page_words(stage.error.hint))}" if stage.error.hint else ""
            st.warning(
                f"**{plain(stage.name)}** is left out. {plain(stage.error.says)}{hint}", icon=":material/warning:"
            )
    kept = [stage for stage in stages if stage.made is not None]
    maps = [stage.made for stage in kept if stage.made is not None]
    if not maps:
        return
    fused = bool(maps[0].options.fusion)
    which = st.segmented_control(
        "Colours divide", (OWN, COMMON), default=OWN, required=True, key="run-scale", disabled=fused,
        help="Heat is divided by the highest raw value: of each map, or of all. The raw range stands below each.",
    )  # fmt: skip
    one_scale = which == COMMON and not fused
    drawn = on_one_scale(maps) if one_scale else maps
    colour_map = str(st.session_state.get("colour-map", "viridis"))
    opacity = float(st.session_state.get("opacity", OPACITY))
    st.html(strip_html(kept, drawn, subject.picture, one_scale=one_scale, colour_map=colour_map, opacity=opacity))
    highest = f"{max(one.raw_maximum for one in maps):.3g}" if one_scale else "the highest of each map"
    st.html(scale(colour_table(colour_map), "0 and below", highest))
    if len(maps) < 2:
        return
    _curves(kept, maps, agreement, target)
    asked = request_of(
        kept, maps, subject.picture, names, best=target is None, one_scale=one_scale, colour_map=colour_map,
        opacity=opacity, threads=threads,
    )  # fmt: skip
    _downloads(stages, kept, maps, drawn, agreement, subject.picture, asked, names)


def strip_html(
    kept: Sequence[Stage],
    drawn: Sequence[Explanation],
    picture: Picture,
    *,
    one_scale: bool,
    colour_map: str,
    opacity: float,
) -> str:
    """The maps in a row that scrolls, each with its captions. drawn: on the scale that they are shown with."""
    cells = []
    for number, (stage, made) in enumerate(zip(kept, drawn, strict=True), start=1):
        small, scaled = for_display(picture, made, longest=_SIDE)
        pixels = Image.fromarray(overlay(small, scaled, colour_map=colour_map, opacity=opacity))
        name, place, answer, raw = strip_lines(made, stage.name, stage.place, one_scale=one_scale)
        cells.append(
            f'<figure><img src="{sprites.data_address(pixels, quality=90)}" '
            f'alt="{escaped(f"Heat map {number} of {len(kept)}: {name}, {answer}")}">'
            f'<figcaption><b title="{escaped(name)}">{number}. {escaped(name)}</b><span>{escaped(place)}</span>'
            f"<span>{escaped(answer)}</span><small>{escaped(raw)}</small></figcaption></figure>"
        )
    return f'<div class="mi-strip" tabindex="0" role="group" aria-label="Heat maps of the run">{"".join(cells)}</div>'


def _curves(kept: Sequence[Stage], maps: Sequence[Explanation], agreement: Sequence[float], target: int | None) -> None:
    places, axis = axis_of([stage.place for stage in kept])
    shares = [one.target.probability for one in maps]
    numbers = [one.target.logit if share is None else share for one, share in zip(maps, shares, strict=True)]
    asked = maps[-1].target.name or f"class {maps[-1].target.index}"
    left, right = st.columns(2)
    figure = curve_figure(
        [("share", tuple(zip(places, numbers, strict=True)))],
        title="Share of the best class" if target is None else f"Share of {asked}",
        x=axis,
        y="share",
    )
    if None in shares:
        figure.update_yaxes(range=None, autorange=True, title_text="score")
        figure.update_layout(title_text="Score of the best class" if target is None else f"Score of {asked}")
    with left:
        draw_chart(figure, key="run-shares", alt="The class's share by checkpoint")
    figure = curve_figure(
        [("rank correlation", tuple(zip(places, agreement, strict=True)))],
        title="Likeness to the last map",
        x=axis,
        y="rank correlation",
        lowest=-1.0,
    )
    with right:
        draw_chart(figure, key="run-agreement", alt="Likeness to the last map by checkpoint")
    says = "1 is the last checkpoint's order of places, 0 no likeness, -1 the reverse; of the maps before ReLU."
    empty = sum(map(math.isnan, agreement))
    if empty == len(maps):
        says = "The last map has nothing to be compared with."
    elif empty:
        says += f" {empty} of {len(maps)} maps have nothing to compare."
    if target is None and len({one.target.index for one in maps}) > 1:
        says += " The best class is not the same in all of them, so neither is what the maps are of."
    st.caption(says)


def request_of(
    kept: Sequence[Stage],
    maps: Sequence[Explanation],
    picture: Picture,
    names: tuple[str, ...],
    *,
    best: bool,
    one_scale: bool,
    colour_map: str,
    opacity: float,
    threads: int,
) -> Request:
    """What the command line would be asked for to make this strip again."""
    from inspector.cam.exporting.request import request_for

    asked = request_for(
        maps[0],
        file=kept[0].name,
        picture=picture.name,
        colour_map=colour_map,
        opacity=opacity,
        threads=threads,
    )
    return replace(
        asked,
        series=tuple(stage.name for stage in kept[1:]),
        classes=() if best else asked.classes,
        common_scale=one_scale,
        threshold=THRESHOLD,
        names=names_option(names, kept[0].stated),
    )


def strip_png(
    kept: Sequence[Stage],
    drawn: Sequence[Explanation],
    picture: Picture,
    *,
    one_scale: bool,
    colour_map: str,
    opacity: float,
) -> bytes:
    """As the command line writes it, from every pixel of the picture."""
    asked = StripAsked(
        picture=picture.ref,
        kept=tuple(kept),
        drawn=tuple(drawn),
        one_scale=one_scale,
        colour_map=colour_map,
        opacity=opacity,
    )
    # Asked for once: it is not kept.
    data: bytes = jobs.ask(Job(kind="strip", arguments=(asked,), known_by=secrets.token_hex(16)))
    return data


def run_csv(stages: Sequence[Stage], agreement: Sequence[float], picture: Picture) -> str:
    """A row for each checkpoint, in order. agreement: of those that gave a map."""
    rows: list[Row] = []
    values = iter(agreement)
    for stage in stages:
        if stage.made is None:
            row = row_of_error(str(stage.error), checkpoint=stage.name, picture=picture.name)
            rows.append((*row, *strip_columns(stage.place, math.nan)))
        else:
            row = row_of(stage.made, checkpoint=stage.name, picture=picture.name, threshold=THRESHOLD)
            rows.append((*row, *strip_columns(stage.place, next(values))))
    return table_csv(rows, COLUMNS)


def manifest_json(kept: Sequence[Stage], maps: Sequence[Explanation], picture: Picture, request: Request) -> str:
    """Everything needed to make the strip again."""
    from inspector.cam.exporting.manifest import Source, entry_of, manifest_of

    manifest = manifest_of(
        request,
        [entry_of(made, checkpoint=number, key=f"{number:04d}_") for number, made in enumerate(maps)],
        checkpoints=[Source(name=stage.name, sha256=stage.sha256) for stage in kept],
        pictures=[Source(name=picture.name, sha256=picture.sha256)],
        versions=maps[0].versions,
        files=(),
    )
    return as_json(manifest)


def _downloads(
    stages: Sequence[Stage],
    kept: Sequence[Stage],
    maps: Sequence[Explanation],
    drawn: Sequence[Explanation],
    agreement: Sequence[float],
    picture: Picture,
    asked: Request,
    names: tuple[str, ...],
) -> None:
    from inspector.cam.exporting.arrays import maps_npz
    from inspector.cam.exporting.request import command_line

    def drawn_png() -> bytes:
        return strip_png(
            kept, drawn, picture, one_scale=asked.common_scale, colour_map=asked.colour_map, opacity=asked.opacity
        )

    stem = Path(picture.name).stem
    files: list[tuple[str, Callable[[], bytes | str], str]] = [
        ("Strip (PNG)", drawn_png, f"{stem}-run.png"),
        ("Table (CSV)", lambda: run_csv(stages, agreement, picture), f"{stem}-run.csv"),
        ("Maps (NPZ)", lambda: maps_npz(maps), f"{stem}-run.npz"),
        ("Manifest (JSON)", lambda: manifest_json(kept, maps, picture, asked), f"{stem}-run.json"),
    ]
    if asked.names == NAMES_FILE:
        files.append(("Class names (JSON)", lambda: json.dumps(names, ensure_ascii=False), asked.names))
    with st.container(horizontal=True, key="run-downloads"):
        download_buttons(files)
        with st.popover("Command", icon=":material/terminal:"):
            st.caption("The same strip from a terminal, beside the files:")
            st.code(command_line(asked, "explained"), language=None, wrap_lines=True)
