"""The drawing of a file that carries its graph, and what the file holds of the box that was chosen in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.browser.pieces import own_words
from inspector.errors import UsageError
from inspector.render.html_text import escaped
from inspector.render.page_report.words import mono, table
from inspector.units import COUNT_STEPS, counted, human_bytes, human_count, human_shape

if TYPE_CHECKING:
    from inspector.browser.views import Opened
    from inspector.graph.types import Box, Drawn

_ROWS = 60
_PARAMETERS = "Parameters"


def drawing(opened: Opened) -> dict[str, Any]:
    """What the drawing's scripts take, with `drawn` "" where the file carries no graph. Raises as `graph_of`."""
    found = _drawn(opened)
    if found is None:
        return {"drawn": "", "says": "The file carries no graph that can be drawn."}
    from inspector.render.drawing_data import drawing_data

    counts = opened.report.parameters
    columns = {_PARAMETERS: {m.path: float(m.parameters) for m in counts.modules}} if counts is not None else {}
    return {
        "drawn": drawing_data(found.box, columns),
        "says": own_words(found.says),
        "steps": {_PARAMETERS: list(COUNT_STEPS)},
    }


def chosen(opened: Opened, path: str) -> dict[str, Any]:
    """The box of this path: what it is, and its tensors. Raises UsageError where the drawing has none such."""
    from inspector.render.drawing_data import in_order

    found = _drawn(opened)
    box = next((each for each, _ in in_order(found.box) if each.path == path), None) if found is not None else None
    if box is None:
        raise UsageError("The drawing has no such box.")
    each = f", one of {counted(box.repeat, 'equal neighbour')}" if box.repeat > 1 else ""
    says = f"<p><b>{mono(box.module or box.label or path)}</b> {mono(box.kind)}{each}</p>"
    return {"html": says + (_held(opened, box) if box.module else "")}


def _drawn(opened: Opened) -> Drawn | None:
    if not opened.graph_read:
        from inspector.graph.boxes import drawn
        from inspector.graph.sources import graph_of

        carried = graph_of(opened.checkpoint)
        opened.drawn = drawn(carried) if carried is not None else None
        opened.graph_read = True
    return opened.drawn


def _held(opened: Opened, box: Box) -> str:
    """The tensors of the module, or of the equal neighbours that its box stands for."""
    from inspector.graph.nesting import CALL
    from inspector.keys.below import tensors_below

    # What is called again has a path of its own, and is the same module.
    modules = tuple(dict.fromkeys(CALL.sub("", one) for one in box.repeated)) if box.repeated else (box.module,)
    state = opened.checkpoint.weights
    tensors = tensors_below(state, modules, None) if state is not None else ()
    if not tensors:
        return '<p class="soft">No tensor of the file belongs to it.</p>'
    whose = f" of {counted(len(modules), 'equal neighbour')}" if len(modules) > 1 else ""
    elements, nbytes = sum(one.numel for one in tensors), sum(one.nbytes for one in tensors)
    numbers = f"{human_count(elements)} elements, {escaped(human_bytes(nbytes))}"
    says = f"<p>{counted(len(tensors), 'tensor')} in the file{whose}, {numbers}</p>"
    rows = [
        (mono(one.name, 60), escaped(human_shape(one.shape)), escaped(one.dtype), human_bytes(one.nbytes))
        for one in tensors[:_ROWS]
    ]
    listed = table(("Tensor", "Shape", "Type", "Bytes"), rows, numeric=(3,))
    left = len(tensors) - _ROWS
    rest = f'<p class="soft">{counted(left, "further tensor")}: under Tensors.</p>' if left > 0 else ""
    return says + listed + rest
