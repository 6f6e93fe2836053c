"""What can be taken home of a map: overlay, heat, numbers, how it was made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from inspector.cam.report import Explanation
from inspector.render.json import as_json
from inspector.render.overlay import heat_picture, overlay, png_bytes
from inspector.web.explain.pictures import Picture, decoded


def download_row(
    picture: Picture,
    first: Explanation,
    second: Explanation | None,
    *,
    style_args: tuple[str, float],
    command: str,
) -> None:
    """Buttons; a file is made when it is asked for, from every pixel of the original."""
    colour_map, opacity = style_args
    stem = Path(picture.name).stem

    def whole(made: Explanation) -> bytes:
        return png_bytes(overlay(decoded(picture), made, colour_map=colour_map, opacity=opacity))

    rows: list[tuple[str, Callable[[], bytes | str], str]] = [
        ("Overlay (PNG)", lambda: whole(first), f"{stem}-overlay.png"),
        ("Heat (PNG)", lambda: png_bytes(heat_picture(first, colour_map=colour_map)), f"{stem}-heat.png"),
        ("Maps (NPZ)", lambda: maps_npz(first), f"{stem}-maps.npz"),
        ("Manifest (JSON)", lambda: as_json(first), f"{stem}-explanation.json"),
    ]
    if second is not None:
        other = second
        rows.insert(1, ("Second overlay (PNG)", lambda: whole(other), f"{stem}-overlay-{second.target.index}.png"))
    with st.container(horizontal=True, key="explain-files"):
        for text, data, name in rows:
            st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)
        with st.popover("Command", icon=":material/terminal:"):
            st.caption("The same map from a terminal:")
            st.code(command, language="bash", wrap_lines=True)


def maps_npz(explanation: Explanation) -> bytes:
    """heat, raw and logits as float32 arrays."""
    import io

    import numpy as np

    buffer = io.BytesIO()
    np.savez_compressed(buffer, heat=explanation.heat, raw=explanation.raw, logits=explanation.logits)
    return buffer.getvalue()


def command_of(file: str, picture: str, made: Explanation) -> str:
    """The command line that makes this map again."""
    import shlex

    words = ["inspector", "explain", file, picture, "--layer", made.layer.path, "--class", str(made.target.index)]
    words += ["--method", made.method, "--output", f"{Path(picture).stem}-overlay.png"]
    return " ".join(map(shlex.quote, words))
