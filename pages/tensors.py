"""Tensors: which tensors are in the file, and what do the numbers of one look like?"""

import streamlit as st

from inspector.checkpoint.types import TensorInfo
from inspector.units import counted
from inspector.web import reports, states, tensor_table
from inspector.web.components import need_file, title
from inspector.web.session import TENSOR_QUERY, Hand
from inspector.web.tensor_panel import tensor_panel
from inspector.web.text import visible
from inspector.web.trees import table_height


@st.fragment
def browse(hand: Hand, tensors: tuple[TensorInfo, ...]) -> None:
    """Filter, table and panel: a click redraws this part only."""
    wanted = st.query_params.get(TENSOR_QUERY, "")
    linked = next((t for t in tensors if t.name == wanted), None) if wanted else None
    if linked is not None and "tensor-filter" not in st.session_state:
        st.session_state["tensor-filter"] = wanted
    search, module = st.columns([3, 2])
    words = search.text_input(
        "Filter",
        key="tensor-filter",
        placeholder="part of a name, a shape or a type",
        icon=":material/search:",
        live=True,
    )
    places = tensor_table.modules(tensors)
    place = module.selectbox(
        "Module", places, index=None, placeholder="the whole model", format_func=visible, key="tensor-module"
    )
    shown = tensor_table.filtered(tensors, words or "", place or "")
    st.caption(f"{counted(len(shown), 'tensor')} of {len(tensors):,}. Choose a row to see its numbers.")
    event = st.dataframe(
        tensor_table.frame(shown),
        # A chosen row is a position: in another selection of tensors it would be another tensor.
        key=f"tensors-{hand.sha256[:12]}-{place!a}-{words}",
        hide_index=True,
        height=table_height(len(shown), 430),
        on_select="rerun",
        selection_mode="single-row",
        column_config=tensor_table.COLUMNS,
        alt="Tensors with shape, type, elements and bytes",
    )
    st.download_button(
        "Table as CSV", lambda: tensor_table.table_csv(shown), "tensors.csv", "text/csv", on_click="ignore"
    )
    rows = event.selection.rows if hasattr(event, "selection") else []
    chosen = shown[rows[0]] if rows and rows[0] < len(shown) else linked
    if chosen is not None:
        st.query_params[TENSOR_QUERY] = chosen.name
        tensor_panel(hand, chosen, state=state)


title("Tensors", "Which tensors are in the file, and what do their numbers look like?")
hand = need_file(
    "Every tensor with shape, type and size; a histogram and statistics for the one you choose.", "clean", "sick"
)
checkpoint = reports.checkpoint_of(hand)
state = states.choose_state(checkpoint)
tensors = state.tensors if state is not None else checkpoint.tensors
if tensors:
    browse(hand, tensors)
else:
    st.info("There is no tensor in this file.", icon=":material/info:")
