"""A projection on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inspector.projector.report import Neighbour, Projection
from inspector.render.projection import answer, sentences, title_of
from inspector.render.text import pairs, safe, table

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 20


def projection_text(
    found: Projection, near: Sequence[Neighbour], metric: str, written: Sequence[str]
) -> RenderableType:
    """The answer, what stands apart, the neighbours that were asked for, and what was written."""
    from rich.console import Group

    rows = [("Map", safe(answer(found)))]
    rows += [("How" if not n else "", safe(says)) for n, says in enumerate(sentences(found))]
    rows += [("Written", safe(name)) for name in written]
    parts: list[RenderableType] = [pairs(rows)]
    if near:
        made = table(found.noun, "label", f"{metric} distance", right=(0, 2))
        for one in near:
            made.add_row(f"{one.number:,}", safe(title_of(found, one.place)), f"{one.distance:.4g}")
        parts += ["", made]
    far = sorted((at for at in range(found.count) if found.apart[at]), key=lambda at: -found.norms[at])
    if far:
        made = table(f"apart: {found.noun}", "label", "norm", right=(0, 2))
        for at in far[:_SHOWN]:
            made.add_row(f"{found.numbers[at]:,}", safe(title_of(found, at)), f"{found.norms[at]:.4g}")
        if len(far) > _SHOWN:
            made.add_row(f"and {len(far) - _SHOWN:,} more", "", "")
        parts += ["", made]
    return Group(*parts)
