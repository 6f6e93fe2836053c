"""Tensors: which tensors are in the file, and what do the numbers of one look like?"""

import streamlit as st

from inspector.checkpoint.types import TensorInfo
from inspector.units import counted, human_bytes, human_count, human_shape
from inspector.web import measuring, reports, tensor_table
from inspector.web.components import Figure, figures, need_file, title
from inspector.web.guard import said
from inspector.web.session import Hand
from inspector.web.text import escaped, visible


def panel(hand: Hand, tensor: TensorInfo) -> None:
    """One tensor: what the file declares, and one read over its numbers."""
    st.code(visible(tensor.name), language=None, wrap_lines=True)
    figures(
        [
            Figure(label="shape", says=human_shape(tensor.shape), exact=str(tensor.shape)),
            Figure(label="element type", says=tensor.dtype),
            Figure(label="elements", says=human_count(tensor.numel), exact=f"{tensor.numel:,}"),
            Figure(label="bytes", says=human_bytes(tensor.nbytes), exact=f"{tensor.nbytes:,}"),
            Figure(label="saved on", says=tensor.device or "not in the file"),
        ]
    )
    if tensor.note:
        st.html(f"<p>{escaped(tensor.note)}</p>")
    with said():
        statistics = measuring.tensor_statistics(hand, tensor)
        figures(measuring.statistics_figures(statistics))
        if statistics.decoding:
            st.caption(measuring.decoding_says(statistics))
        logarithmic = st.toggle("Logarithmic counts", key="histogram-log")
        st.plotly_chart(
            measuring.histogram_figure(statistics, logarithmic=logarithmic),
            key="histogram",
            config={"displayModeBar": False},
            alt=f"Histogram of {visible(tensor.name)}",
        )


@st.fragment
def browse(hand: Hand, tensors: tuple[TensorInfo, ...]) -> None:
    """Filter, table and panel: a click redraws this part only."""
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
        height=min(430, 38 + 35 * max(1, len(shown))),
        on_select="rerun",
        selection_mode="single-row",
        column_config=tensor_table.COLUMNS,
        alt="Tensors with shape, type, elements and bytes",
    )
    st.download_button(
        "Table as CSV", lambda: tensor_table.table_csv(shown), "tensors.csv", "text/csv", on_click="ignore"
    )
    rows = event.selection.rows if hasattr(event, "selection") else []
    if rows and rows[0] < len(shown):
        panel(hand, shown[rows[0]])


title("Tensors", "Which tensors are in the file, and what do their numbers look like?")
hand = need_file(
    "Every tensor with shape, type and size; a histogram and statistics for the one you choose.", "clean", "sick"
)
checkpoint = reports.checkpoint_of(hand)
state = reports.choose_state(checkpoint)
tensors = state.tensors if state is not None else checkpoint.tensors
if tensors:
    browse(hand, tensors)
else:
    st.info("There is no tensor in this file.", icon=":material/info:")
