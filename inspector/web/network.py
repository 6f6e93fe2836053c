"""The drawing on the Architecture page, and what is said of the box that was chosen in it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from inspector.flops.report import CostReport, ModuleCost
from inspector.graph.nesting import CALL
from inspector.graph.types import Box, Drawn
from inspector.jobs.job import Job
from inspector.params.report import ParameterReport
from inspector.render.bill import COLUMNS
from inspector.units import BYTE_STEPS, COUNT_STEPS, OPERATION_STEPS, counted, human_count
from inspector.web import jobs, reports
from inspector.web.components import Figure, figures
from inspector.web.drawing import show_drawing
from inspector.web.module_held import Held, show_held
from inspector.web.session import Hand
from inspector.web.text import mono

_CHOSEN = "drawing-chosen"
# Columns that boxes can be coloured by, with the steps of their numbers; none for one that has no thousands.
_COLOURS = {
    "parameters": COUNT_STEPS,
    "macs": OPERATION_STEPS,
    "elementwise": OPERATION_STEPS,
    "activations": BYTE_STEPS,
    "read": BYTE_STEPS,
    "written": BYTE_STEPS,
    "intensity": (),
    "calls": COUNT_STEPS,
}
_SAID = ("settings", "input", "output", "macs", "elementwise", "parameters", "activations", "field", "calls")


def carried(hand: Hand) -> Drawn | None:
    """The graph in the file itself; None where it holds none. Raises ReadError where it cannot be read."""
    found: Drawn | None = jobs.ask(
        Job(kind="carried-graph", arguments=(reports.file_of(hand),), near=hand.sha256), says="Reading the graph"
    )
    return found


@st.fragment
def show_network(
    drawn: Drawn, costs: CostReport | None, counts: ParameterReport | None, *, key: str, held: Held | None = None
) -> None:
    """The drawing, and for the chosen box a row of figures and what the file holds of it. held: None without one."""
    rows = {m.path: m for m in costs.modules} if costs is not None else {}

    def choose(box: Box) -> None:
        st.session_state[_CHOSEN] = (key, box.path, box.module, box.label, box.kind, box.repeat, box.repeated)

    state = st.session_state.get(_CHOSEN)
    chosen = state if isinstance(state, tuple) and state[0] == key else None
    show_drawing(
        drawn.box,
        key=key,
        columns=_columns(rows, counts),
        steps={column.title: _COLOURS[column.id] for column in COLUMNS if column.id in _COLOURS},
        chosen=chosen[1] if chosen is not None else "",
        on_choice=choose,
        says=drawn.says,
    )
    if chosen is None:
        st.caption("Choose a box to see what it costs, and what the file holds of it.")
        return
    _, path, module, label, kind, repeat, repeated = chosen
    each = f", one of {counted(repeat, 'equal neighbour')}" if repeat > 1 else ""
    st.html(f"<p class='mi-chosen'><b>{mono(module or label or path)}</b> {mono(kind)}{each}</p>")
    row = rows.get(module)
    if module and row is not None:
        figures([Figure(label=title, says=says) for title, says in _figures_of(row)])
    elif module and counts is not None:
        count = next((m for m in counts.modules if m.path == module), None)
        if count is not None:
            figures([Figure(label="parameters", says=human_count(count.parameters), exact=f"{count.parameters:,}")])
    if module and held is not None:
        # What is called again has a path of its own, and is the same module.
        own = tuple(dict.fromkeys(CALL.sub("", one) for one in repeated)) if repeated and path == module else (module,)
        show_held(held, own)


def _columns(rows: Mapping[str, ModuleCost], counts: ParameterReport | None) -> dict[str, dict[str, float]]:
    """What boxes can be coloured by."""
    if not rows:
        return {"Parameters": {m.path: float(m.parameters) for m in counts.modules}} if counts is not None else {}
    made: dict[str, dict[str, float]] = {}
    for column in COLUMNS:
        if column.id in _COLOURS:
            values = {path: column.value(m) for path, m in rows.items()}
            made[column.title] = {path: float(v) for path, v in values.items() if isinstance(v, int | float)}
    return made


def _figures_of(row: ModuleCost) -> list[tuple[str, str]]:
    found = [(_as_label(column.title), column.says(column.value(row))) for column in COLUMNS if column.id in _SAID]
    return [(title, says) for title, says in found if says]


def _as_label(title: str) -> str:
    """A column's title under a figure: "Receptive field" small, "MACs" as the field writes it."""
    return title if title[:2].isupper() else f"{title[0].lower()}{title[1:]}"
