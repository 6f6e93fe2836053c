"""Run: how did this training go, by the checkpoints that it left?"""

import streamlit as st

from inspector.web.components import title
from inspector.web.run import charts, view
from inspector.web.run.choice import choose_run

title("Run", "How did this training go?")
chosen = choose_run(
    "The checkpoints of one training as one: which layers moved when, where NaN began, what never moved, histograms "
    "over time, and the loss and accuracy that the files state."
)
if chosen is None:
    st.stop()
report = view.report_of(chosen)
if report is None:
    st.skeleton(height=420)
    st.stop()

view.show_answer(report)
if len(report.members) < 2:
    view.show_members(report)
    st.stop()
charts.show_curves(report)
st.header("Layers over time")
by = charts.choose_by()
charts.show_layers(report, by)
charts.show_histograms(report)
view.show_members(report)
view.show_files(report, by)
