"""Weights: what do the numbers of every layer look like?"""

import streamlit as st

from inspector.render import figures as plots
from inspector.render.json import as_json
from inspector.units import counted
from inspector.web import measuring, reports
from inspector.web.components import Figure, figures, finding_cards, need_file, title
from inspector.web.text import escaped, mono
from inspector.web.trees import table
from inspector.weights.fingerprint import fingerprint

title("Weights", "What do the numbers of every layer look like?")
hand = need_file(
    "A heat strip of every layer's values, statistics per tensor, and what is not a number.", "sick", "clean"
)
checkpoint = reports.checkpoint_of(hand)
state = reports.choose_state(checkpoint)
health = measuring.health_report(hand, state)
if health is None:
    st.skeleton(height=420)
    st.stop()
report = health.weights

broken = [t for t in report.tensors if t.nan or t.infinite]
empty = [t for t in report.tensors if t.numel and t.zero == t.numel]
figures(
    [
        Figure(label="tensors measured", says=f"{len(report.tensors):,}"),
        Figure(label="with NaN or infinity", says=f"{len(broken):,}"),
        Figure(label="all zero", says=f"{len(empty):,}"),
        Figure(label="seconds", says=f"{report.seconds:.2f}"),
    ]
)
finding_cards(health.findings)

st.subheader("Fingerprint")
strip = fingerprint(report)
if strip.names:
    st.caption(
        f"A row per weight tensor, the first layer on top: {strip.scale}. Colour is the share of its values in the bin."
    )
    st.plotly_chart(
        plots.fingerprint_figure(strip),
        key="fingerprint",
        config={"displayModeBar": False},
        alt="Layers by values heat strip",
    )
else:
    st.caption("None of the measured tensors has two or more dimensions, so there are no layers to draw.")

st.subheader("Per tensor")
frame = measuring.statistics_frame(report)
st.dataframe(
    frame,
    hide_index=True,
    key="statistics",
    height=min(420, 38 + 35 * max(1, len(frame))),
    column_config={
        name: st.column_config.NumberColumn(format="%.4g")
        for name in ("Minimum", "Mean", "Maximum", "Deviation", "RMS")
    },
    alt="Statistics per tensor",
)
with st.container(horizontal=True):
    st.download_button(
        "Statistics as CSV",
        lambda: measuring.statistics_csv(report),
        file_name="statistics.csv",
        mime="text/csv",
        on_click="ignore",
    )
    st.download_button(
        "Report as JSON", lambda: as_json(report), file_name="weights.json", mime="application/json", on_click="ignore"
    )

if report.skipped:
    st.subheader(f"Not measured: {counted(len(report.skipped), 'tensor')}")
    table(("Tensor", "Why"), [(mono(name, 60), escaped(why)) for name, why in report.skipped], key="skipped")
