"""A network that nobody knows on the Architecture page: what names and shapes tell, and boxes without arrows."""

from __future__ import annotations

import streamlit as st

from inspector.architectures.structure.types import Structure
from inspector.architectures.structure.wording import notation
from inspector.params.report import ParameterReport
from inspector.units import human_count
from inspector.web.text import escaped, mono, plain
from inspector.web.trees import table


def show_structure(structure: Structure, counts: ParameterReport) -> None:
    """How many layers, the parts as boxes, each claim with its evidence, and what no shape tells."""
    st.header("From names and shapes")
    st.html(f"<p>{escaped(structure.counts)}</p>")
    sizes = {module.path: module.parameters for module in counts.modules}
    if structure.parts:
        boxes = "".join(
            f'<li class="mi-box">{mono(part.path)}<span>{escaped(part.says)}</span>'
            f"<small>{human_count(sizes.get(part.path, 0))} parameters</small></li>"
            for part in structure.parts
        )
        st.html(f'<ol class="mi-boxes" data-testid="parts">{boxes}</ol>')
        if structure.more_parts:
            shown = len(structure.parts)
            st.caption(f"The first {shown:,} of {shown + structure.more_parts:,} parts are shown.")
        order = "the file's order" if structure.ordered else "the order of their names: this format sorts its tensors"
        st.caption(
            f"The parts at the top, in {order}. Which one feeds which is in no file of weights, so there are no arrows."
        )
    if structure.claims:
        table(
            ("What they tell", "Evidence"),
            [(escaped(claim.says), f"<small>{escaped(claim.evidence)}</small>") for claim in structure.claims],
            key="claims",
        )
        legend = notation(structure.claims)
        if legend:
            st.caption(plain(legend))
    st.caption(plain(f"No shape tells {'; '.join(structure.open)}."))
