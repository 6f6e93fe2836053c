"""Overview: what is this file?"""

import streamlit as st

from inspector.render import figures as plots
from inspector.units import human_bytes
from inspector.web import reports, verdicts
from inspector.web.components import figures, file_line, finding_cards, need_file, title, verdict_rows
from inspector.web.session import in_hand
from inspector.web.trees import table

held = in_hand()
title(held.name if held else "Overview", "What is this file?")
hand = need_file(
    "The answer in four lines: what the file is, whether it loads, what code it carries, what the reader noticed.",
    "legacy-dataparallel",
    "whole-module",
)
checkpoint = reports.checkpoint_of(hand)
file_line(checkpoint.format_says, human_bytes(checkpoint.origin.nbytes), hand.sha256)

verdict_rows(verdicts.rows(hand, checkpoint))
figures(verdicts.numbers(hand, checkpoint))

if checkpoint.weights is not None:
    counts = reports.parameters_of(hand)
    st.subheader("Size by module")
    st.plotly_chart(
        plots.module_treemap(counts),
        key="treemap",
        config={"displayModeBar": False},
        alt="Treemap of parameters by module",
    )

findings = verdicts.all_findings(hand, checkpoint)
st.subheader("What was noticed")
finding_cards(findings, none="Nothing unusual.")

if checkpoint.metadata:
    st.subheader("Beside the weights")
    table(("What", "Value"), [verdicts.metadata_row(*pair) for pair in checkpoint.metadata], key="metadata")
