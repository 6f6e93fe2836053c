"""A repository of the hub as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from inspector.render.text import pairs, safe, table
from inspector.units import human_bytes

_LISTED = 40


def hub_text(
    rows: Sequence[tuple[str, str]],
    candidates: Sequence[tuple[str, str, int, int]],
    opened: str,
    others: Sequence[tuple[str, int]],
) -> RenderableType:
    """candidates: (path, the file that it stands for, files, bytes). opened: path of the one that `open` takes."""
    main = table("Checkpoint", "Files", "Size", "", right=(1, 2))
    for path, stands_for, files, nbytes in candidates:
        main.add_row(safe(stands_for), f"{files:,}", human_bytes(nbytes), "what open takes" if path == opened else "")
    rest = table("Other file", "Size", right=(1,))
    for path, nbytes in others[:_LISTED]:
        rest.add_row(safe(path), human_bytes(nbytes))
    if len(others) > _LISTED:
        rest.add_row(f"and {len(others) - _LISTED:,} more", "")
    parts: list[RenderableType] = [pairs([(name, safe(text)) for name, text in rows if text])]
    parts += ["", main] if candidates else ["", "No file is named as a checkpoint."]
    if others:
        parts += ["", rest]
    return Group(*parts)
