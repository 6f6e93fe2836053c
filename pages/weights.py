"""Weights: is this model any good, by its numbers alone?"""

from functools import partial

import streamlit as st

from inspector.findings import Finding
from inspector.health.report import HealthReport
from inspector.render import figures as plots
from inspector.render import weight_figures
from inspector.render.json import as_json
from inspector.units import counted, human_bytes
from inspector.web import health_view, measuring, reports, states
from inspector.web.charts import draw_chart
from inspector.web.components import need_file, quiet, title
from inspector.web.session import Hand
from inspector.web.tensor_panel import tensor_panel
from inspector.web.text import escaped, mono, visible
from inspector.web.trees import table, table_height

title("Weights", "Is this model any good, by its numbers alone?")
hand = need_file(
    "What is wrong with the numbers, worst first; a heat strip of every layer's values, and statistics per tensor.",
    "sick",
    "clean",
)
checkpoint = reports.checkpoint_of(hand)
state = states.choose_state(checkpoint)
health = measuring.health_report(hand, state)
if health is None:
    st.skeleton(height=420)
    st.stop()


@st.fragment
def findings(hand: Hand, health: HealthReport) -> None:
    """What was found, filtered, and the tensor that was chosen: a click redraws this part only."""
    st.html(health_view.sentence(health))
    shown = health_view.filtered(health)
    names = [t.name for t in health.weights.tensors] + [name for name, _ in health.weights.skipped]
    health_view.draw_findings(shown, frozenset(names))
    if health.findings and not shown:
        quiet("Nothing of that is left after the filters.")
    chosen = health_view.choose_tensor(names, health.findings)
    if chosen is not None:
        tensors = state.tensors if state is not None else checkpoint.tensors
        about: tuple[Finding, ...] = tuple(f for f in health.findings if chosen in f.subjects)
        with st.container(border=True):
            tensor_panel(hand, next(t for t in tensors if t.name == chosen), about, state=state)


findings(hand, health)


report = health.weights
sick = health_view.sick_names(health)
st.header("Fingerprint")
strip = measuring.strip_of(report, only=sick) if sick else measuring.strip_of(report)
rest = measuring.strip_of(report, without=sick) if sick else None
if strip.tensors or (rest is not None and rest.tensors):
    says = f"A row each: {strip.drawn.scale}. Colour is the share of its values in the bin."
    if strip.tensors:
        whose = f"{counted(strip.tensors, 'weight tensor')}{' with an error or a warning' if sick else ''}"
        st.caption(f"{whose}. {says}")
        draw_chart(plots.fingerprint_figure(strip.drawn), key="fingerprint", alt="Layers by values heat strip")
    if rest is not None and rest.tensors:
        with st.expander(f"{counted(rest.tensors, 'other tensor')}, the first layer on top"):
            if not strip.tensors:
                st.caption(says)
            draw_chart(
                plots.fingerprint_figure(rest.drawn),
                key="fingerprint-rest",
                alt="The other layers by values heat strip",
            )
    st.header("Scale by depth")
    draw_chart(weight_figures.depth_figure(health, sick), key="depth", alt="Root mean square of each weight")
else:
    st.caption("None of the measured tensors has two or more dimensions, so there are no layers to draw.")

st.header("Per tensor")
frame = measuring.statistics_frame(health)
st.dataframe(
    frame,
    hide_index=True,
    key="statistics",
    height=table_height(len(frame), 420),
    # The last one is empty but for quantised numbers.
    column_order=[name for name in map(str, frame) if name != "Measured as" or frame[name].any()],
    column_config={
        "Tensor": st.column_config.TextColumn(width=225),
        **{
            name: st.column_config.NumberColumn(format="%.4g")
            for name in ("Minimum", "Mean", "Maximum", "Deviation", "RMS")
        },
    },
    alt="Statistics per tensor",
)
with st.container(horizontal=True):
    st.download_button(
        "Statistics as CSV",
        partial(measuring.statistics_csv, health),
        file_name="statistics.csv",
        mime="text/csv",
        on_click="ignore",
    )
    st.download_button(
        "Report as JSON", lambda: as_json(health), file_name="weights.json", mime="application/json", on_click="ignore"
    )

read = sum(t.numel for t in report.tensors)
beyond = f", and {counted(health.beyond, 'tensor')} of the rest of the file" if health.beyond else ""
st.caption(
    f"{counted(len(report.tensors), 'tensor')} with {read:,} numbers read in {report.seconds:.2f} s{beyond}; "
    f"{human_bytes(checkpoint.origin.nbytes)} in the file. Not told by weights alone: accuracy, over-fitting, what "
    "happens to real data on the way."
)
if health.not_examined:
    st.header("Not examined")
    table(
        ("What", "Why"), [(mono(what, 120), escaped(visible(why))) for what, why in health.not_examined], key="skipped"
    )
