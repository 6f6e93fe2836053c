"""Compare: what changed between two files, and what does that prove?"""

from functools import partial

import streamlit as st

from inspector.compare.report import Diff
from inspector.render.json import as_json
from inspector.units import counted, human_bytes
from inspector.web import comparison, comparison_pictures, reports, states
from inspector.web.components import need_file, title
from inspector.web.guard import said
from inspector.web.second_file import put_down, second_file
from inspector.web.session import Hand
from inspector.web.text import plain

title("Compare", "What changed between two files, and what does that prove?")
hand = need_file(
    "Two checkpoints tensor by tensor: what is the same, cast or changed, by how much and where, and what the numbers "
    "prove of the whole.",
    "clean",
)
checkpoint = reports.checkpoint_of(hand)
other = second_file(hand, itself=len(checkpoint.state_dicts) > 1, fitting=("half", "sick", "transformer"))
if other is None:
    st.stop()
names, change = st.columns([6, 1.4], vertical_alignment="center")
names.markdown(f"**{plain(hand.name)}** and **{plain(other.name)}**")
if change.button("Another file", icon=":material/close:", key="second-other", width="stretch"):
    put_down()
    st.rerun()
state = states.choose_state(checkpoint)
second = reports.checkpoint_of(other)
its = comparison.choose_other_state(second, state if other.sha256 == hand.sha256 else None, state)
diff = comparison.compare(hand, state, other, its)
if diff is None:
    st.skeleton(height=420)
    st.stop()

names_of_entries = comparison.names_of(hand, state, other, its)
comparison.draw_answer(diff)
comparison.draw_strip(diff)


@st.fragment
def rows(diff: Diff, hand: Hand, other: Hand) -> None:
    """A click redraws this part only."""
    chosen = comparison.draw_table(diff, names_of_entries)
    if chosen is not None:
        with st.container(border=True):
            st.markdown(f"**{plain(chosen.name)}**")
            comparison.draw_histograms(chosen, hand, state, other, its)


rows(diff, hand, other)
with said():
    comparison_pictures.draw_network(diff, hand, state)
with said():
    comparison_pictures.draw_fingerprints(diff, hand, state, other, its)
comparison.draw_others(diff)
with st.expander("The two files"):
    comparison.draw_sides(diff)
with st.container(horizontal=True):
    st.download_button(
        "Tensors as CSV",
        partial(comparison.csv_of, diff, names_of_entries),
        file_name="difference.csv",
        mime="text/csv",
        on_click="ignore",
    )
    st.download_button(
        "Report as JSON", lambda: as_json(diff), file_name="difference.json", mime="application/json", on_click="ignore"
    )
pairs = counted(sum(tensor.a is not None and tensor.b is not None for tensor in diff.tensors), "pair")
st.caption(f"{pairs} of tensors compared, {human_bytes(diff.read_nbytes)} read in {diff.seconds:.2f} s.")
