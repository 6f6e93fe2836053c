"""Overview: what is this file?"""

import streamlit as st

from inspector.errors import ReadError
from inspector.render import figures as plots
from inspector.units import counted, human_bytes
from inspector.web import answers as verdicts
from inspector.web import finding_ways, measuring, merging, next_steps, reports, shelf, states
from inspector.web.charts import draw_chart
from inspector.web.components import figures, file_line, need_file, title, verdict_rows
from inspector.web.file_report import report_dialog
from inspector.web.guard import said
from inspector.web.repair import unwrapping
from inspector.web.session import in_hand
from inspector.web.trees import table

READ_AT_ONCE = 1_000_000_000  # bytes: a second or two

held = in_hand()
title(held.name if held else "Overview", "What is this file?")
hand = need_file(
    "The answer in four lines: what the file is, whether it loads, what code it carries, what the reader noticed.",
    "legacy-dataparallel",
    "whole-module",
)
try:
    checkpoint = reports.checkpoint_of(hand)
except ReadError:
    shelf.show_if_many(hand)
    raise
with st.container(horizontal=True, vertical_alignment="center", key="overview-file"):
    file_line(checkpoint.format_says, human_bytes(checkpoint.origin.nbytes), checkpoint.origin.sha256 or "")
    if not hand.is_elsewhere and st.button("Report", key="file-report", icon=":material/article:"):
        report_dialog(hand)

state = states.choose_of_several(checkpoint) or checkpoint.weights
small = state is not None and not hand.is_elsewhere and sum(t.nbytes for t in checkpoint.tensors) <= READ_AT_ONCE
measured = (
    measuring.health_report(hand, state, draw=False)
    if small
    # The Weights page may have had it read.
    else measuring.health_if_read(hand, state)
    if state is not None and not hand.is_elsewhere
    else None
)
answer = verdicts.overview_of_hand(hand, checkpoint, measured)
verdict_rows(verdicts.rows(checkpoint, answer.answers))
figures(verdicts.numbers(hand, checkpoint))

finding_ways.draw_findings(hand, checkpoint, answer.findings, measured)
if checkpoint.format == "onnx":
    next_steps.show_for_onnx()
elif state is not None and merging.is_adapters(state):
    st.header("Merge it into its base")
    with said():
        merging.show_merge(hand, checkpoint, state)
elif checkpoint.weights is not None:
    recognition, another = reports.recognition_of(hand), reports.why_another(hand)
    unknown = bool(another) or recognition.best is None
    off = unwrapping.what_comes_off(hand, state or checkpoint.weights) if unknown else ""
    next_steps.show_for_unknown(recognition, another=another, off=off, is_module=checkpoint.weights.is_module)

if checkpoint.weights is not None:
    sizes, values = st.columns(2)
    with sizes:
        st.header("Size by module")
        treemap = plots.module_treemap(reports.parameters_of(hand))
        draw_chart(treemap, key="treemap", height=380, alt="Treemap of bytes by module")
    with values:
        st.header("Fingerprint")
        strip = measuring.small_fingerprint(measured.weights) if measured is not None else None
        if strip is not None:
            draw_chart(strip, key="strip", height=380, alt="Layers by values heat strip")
        elif measured is not None:
            st.caption("No measured tensor has two or more dimensions, so there are no layers to draw.")
        elif small:
            if measuring.health_report(hand, state) is not None:
                # It ended while the page was drawn, so that nothing watches it any more.
                st.rerun()
            st.skeleton(height=340)
        elif hand.is_elsewhere:
            st.caption("Only the header was read at the file's address. Its values take the whole file.")
        else:
            st.caption("Large weights are read on the Weights page, with progress and a way to stop.")

if checkpoint.parts:
    with st.expander(f"Made of {counted(len(checkpoint.parts), 'file')}", icon=":material/folder_open:"):
        table(
            ("File", "Size", "What it is"),
            [verdicts.part_row(part) for part in checkpoint.parts],
            numeric=(1,),
            key="parts",
        )

if checkpoint.metadata:
    with st.expander(f"Beside the weights: {counted(len(checkpoint.metadata), 'value')}", icon=":material/notes:"):
        table(("What", "Value"), [verdicts.metadata_row(*pair) for pair in checkpoint.metadata], key="metadata")
