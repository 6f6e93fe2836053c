"""What stands in a box and on an edge, the same in every kind of file."""

from __future__ import annotations

from inspector.graph.nesting import Shape
from inspector.graph.types import Box
from inspector.units import shorten_middle

_WIDTH = 60


def shape_words(shape: Shape) -> str:
    """ "1x64x56x56", "?" for a size that is not known, "scalar"; "" where no shape is known."""
    if shape is None:
        return ""
    return "x".join("?" if size is None else str(size)[:40] for size in shape) or "scalar"


def box_words(box: Box) -> tuple[str, str]:
    """(its name and how often it stands there, its class and shape)."""
    name = shorten_middle(box.label or box.kind or box.path, _WIDTH)
    if box.repeat > 1:
        name += f" ×{box.repeat}"
    kind = shorten_middle(box.kind, _WIDTH) if box.kind != box.label else ""
    return name, "  ".join(part for part in (kind, shape_words(box.shape)) if part)
