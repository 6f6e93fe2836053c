"""What the file holds of the module that was chosen in the drawing: its tensors, and the findings that name them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.errors import InspectorError
from inspector.health.report import HealthReport
from inspector.keys.below import findings_about, tensors_below
from inspector.keys.report import KeyReport
from inspector.units import counted, human_bytes
from inspector.web import measuring, reports, tensor_table
from inspector.web.components import finding_cards, quiet
from inspector.web.session import Hand
from inspector.web.text import escaped
from inspector.web.trees import table_height


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The file behind a drawing. own_names: the drawing is of the graph in the file, so that its modules are called as
    the file's tensors are; else they are those of the recognised network."""

    hand: Hand
    state: StateDict
    own_names: bool = False


def show_held(held: Held, modules: tuple[str, ...]) -> None:
    """modules: the chosen one, or equal neighbours that one box stands for."""
    keys = None if held.own_names else _keys(held)
    tensors = tensors_below(held.state, modules, keys)
    if not tensors:
        quiet("No tensor of the file belongs to it.")
        return
    whose = f" of {counted(len(modules), 'equal neighbour')}" if len(modules) > 1 else ""
    _show_findings(held, modules, tensors, keys)
    nbytes = sum(one.nbytes for one in tensors)
    st.html(f"<b>{counted(len(tensors), 'tensor')} in the file{whose}</b>, {escaped(human_bytes(nbytes))}")
    st.dataframe(
        tensor_table.frame(tensors),
        hide_index=True,
        height=table_height(len(tensors), 286),
        column_config=tensor_table.COLUMNS,
        column_order=("Tensor", "Shape", "Type", "Bytes"),
        alt="Tensors of the chosen module with shape, type and bytes",
    )
    _link(held, tensors)


def _keys(held: Held) -> KeyReport | None:
    """The file's keys against what it was recognised as; None where nothing was recognised or it cannot be compared."""
    target = reports.own_target(held.hand, held.state)
    if target is None:
        return None
    try:
        return reports.keys_of(held.hand, target, held.state)
    except InspectorError:
        return None


def _link(held: Held, tensors: tuple[TensorInfo, ...]) -> None:
    """To the same tensors on the page that shows the numbers of each."""
    place = _common([one.name for one in tensors])
    if st.button("Numbers of each tensor", icon=":material/data_array:", key=f"held-{held.hand.sha256[:12]}"):
        st.session_state["tensor-filter"] = ""
        st.session_state["tensor-module"] = place or None
        st.switch_page("pages/tensors.py")


def _common(names: list[str]) -> str:
    """The innermost module that holds all of these, in the file's names."""
    paths = [name.split(".")[:-1] for name in names]
    shared = paths[0]
    for path in paths[1:]:
        same = next(
            (n for n, (a, b) in enumerate(zip(shared, path, strict=False)) if a != b), min(len(shared), len(path))
        )
        shared = shared[:same]
    return ".".join(shared)


def _show_findings(
    held: Held, modules: tuple[str, ...], tensors: tuple[TensorInfo, ...], keys: KeyReport | None
) -> None:
    measured = measuring.health_if_read(held.hand, held.state)
    names = [one.name for one in held.state.tensors]
    found, many = findings_about(
        tensors,
        modules,
        of_file=reports.checkpoint_of(held.hand).findings,
        of_keys=(*reports.recognition_of(held.hand, held.state).findings, *(keys.findings if keys is not None else ())),
        of_numbers=measured.findings if measured is not None else (),
        known=names,
    )
    finding_cards(found)
    unread = _unread(tensors, measured)
    if not unread and not found:
        alone = " alone" if many else ""
        quiet(f"Nothing was noticed about it{alone}: names, shapes and numbers were looked at.")
    elif unread == len(tensors):
        says = "Nothing else was noticed" if found else "Nothing was noticed"
        st.html(f"<p>{says} in names and shapes. The numbers were not read yet.</p>")
        if measured is None:
            st.page_link("pages/weights.py", label="Read the numbers", icon=":material/bar_chart:")
    elif unread:
        st.html(f"<p>Of {unread:,} of these tensors the numbers could not be read.</p>")
    if many:
        others = counted(len(many), "finding")
        st.html(f"<p><small>{others} about many tensors of the file may be about these too: see Overview.</small></p>")


def _unread(tensors: tuple[TensorInfo, ...], measured: HealthReport | None) -> int:
    """How many were not measured."""
    known = {one.name for one in measured.weights.tensors} if measured is not None else set()
    return sum(one.name not in known for one in tensors)
