"""What can be taken home of a map: overlay, heat, numbers, how it was made."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from inspector.cam.report import Explanation
from inspector.jobs.job import Job
from inspector.render.json import as_json
from inspector.render.overlay import heat_picture, png_bytes
from inspector.web import jobs, reports
from inspector.web.explain.answer import NAMES_FILE, kept_names, names_option, stated_names
from inspector.web.explain.pictures import Picture
from inspector.web.pasted_code import is_pasted
from inspector.web.session import Hand

if TYPE_CHECKING:
    from inspector.cam.exporting.request import Request


def download_row(
    hand: Hand,
    picture: Picture,
    first: Explanation,
    second: Explanation | None,
    *,
    style_args: tuple[str, float],
    threads: int,
) -> None:
    """Into the row that is open; a file is made when it is asked for, from every pixel of the original."""
    from inspector.cam.exporting.request import command_line

    colour_map, opacity = style_args
    rows = files_of(hand, picture, first, colour_map=colour_map, opacity=opacity, threads=threads)
    if second is not None:
        _, drawn, _ = files_of(hand, picture, second, colour_map=colour_map, opacity=opacity, threads=threads)[0]
        rows.insert(1, ("Second overlay (PNG)", drawn, f"{Path(picture.name).stem}-overlay-2.png"))
    request = own_request(hand, picture, first, colour_map=colour_map, opacity=opacity, threads=threads)
    if request.names == NAMES_FILE:
        names = json.dumps(kept_names(hand), ensure_ascii=False)
        rows.append(("Class names (JSON)", lambda: names, NAMES_FILE))
    with st.popover("Download", icon=":material/download:"):
        for text, data, name in rows:
            st.download_button(text, data, file_name=name, on_click="ignore", key=name, width="stretch")
    with st.popover("Command", icon=":material/terminal:"):
        st.caption("The same map from a terminal:")
        if is_pasted(request.target):
            st.caption("Save what you pasted under the name after code: first.")
        st.code(command_line(request, "explained"), language=None, wrap_lines=True)


def files_of(
    hand: Hand, picture: Picture, made: Explanation, *, colour_map: str, opacity: float, threads: int
) -> list[tuple[str, Callable[[], bytes | str], str]]:
    """(what it is, what makes it, its name) of each file; the manifest's command line makes the same bytes."""
    from inspector.cam.exporting.arrays import maps_npz

    stem = Path(picture.name).stem
    request = own_request(hand, picture, made, colour_map=colour_map, opacity=opacity, threads=threads)

    def whole() -> bytes:
        # Asked for once: it is not kept.
        job = Job(kind="overlay", arguments=(picture.ref, made, colour_map, opacity), known_by=secrets.token_hex(16))
        data: bytes = jobs.ask(job)
        return data

    return [
        ("Overlay (PNG)", whole, f"{stem}-overlay.png"),
        ("Heat (PNG)", lambda: png_bytes(heat_picture(made, colour_map=colour_map)), f"{stem}-heat.png"),
        ("Maps (NPZ)", lambda: maps_npz([made]), f"{stem}-maps.npz"),
        ("Manifest (JSON)", lambda: manifest_json(hand, picture, made, request), f"{stem}-explanation.json"),
    ]


def _names(hand: Hand, made: Explanation) -> str:
    """What the command is given for the names that this map was made with."""
    return names_option(kept_names(hand), stated_names(hand)) if made.target.name is not None else ""


def _target(hand: Hand) -> str:
    """What it is given where one's own code built the network."""
    code = reports.model_file(hand).code
    return code.text if code is not None else ""


def own_request(
    hand: Hand, picture: Picture, made: Explanation, *, colour_map: str, opacity: float, threads: int
) -> Request:
    """What the command line would be asked for to make a map of this page again."""
    return request_of(
        hand.name,
        picture.name,
        made,
        colour_map=colour_map,
        opacity=opacity,
        threads=threads,
        names=_names(hand, made),
        target=_target(hand),
    )


def request_of(
    file: str,
    picture: str,
    made: Explanation,
    *,
    colour_map: str,
    opacity: float,
    threads: int,
    names: str = "",
    target: str = "",
) -> Request:
    """What the command line would be asked for to make this map again. names, target: as its options take them."""
    from inspector.cam.exporting.request import request_for

    asked = request_for(made, file=file, picture=picture, colour_map=colour_map, opacity=opacity, threads=threads)
    return replace(asked, names=names, target=target)


def manifest_json(hand: Hand, picture: Picture, made: Explanation, request: Request) -> str:
    """Everything needed to make the map again."""
    from inspector.cam.exporting.manifest import Source, entry_of, manifest_of

    manifest = manifest_of(
        request,
        [entry_of(made)],
        checkpoints=[Source(name=hand.name, sha256=hand.sha256)],
        pictures=[Source(name=picture.name, sha256=picture.sha256)],
        versions=made.versions,
        files=(),
    )
    return as_json(manifest)
