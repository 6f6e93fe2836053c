"""Wrong answers that were sure, as pictures: where the model looked for what it answered."""

from __future__ import annotations

import streamlit as st

from inspector.evaluate.report import Evaluation
from inspector.jobs.asked import WorstCase
from inspector.units import human_share
from inspector.web.evaluation.asked import Asked, worst_cases
from inspector.web.explain import pictures
from inspector.web.guard import said
from inspector.web.text import escaped, plain

# Two beside each other on a telephone.
_WIDTH = 178


def show_worst(asked: Asked, report: Evaluation) -> None:
    """The surest wrong answers with a heat map of what was answered, and the way to Explain."""
    st.header("Wrong and sure")
    if not report.worst:
        st.caption("No picture was answered wrong.")
        return
    st.caption("The surest wrong answers; the heat (Grad-CAM) is of the class that was answered.")
    cases = worst_cases(asked, report)
    if cases is None:
        return
    with st.container(horizontal=True, gap="small", key="worst-cases"):
        for number, case in enumerate(cases):
            with st.container(width=_WIDTH, gap="xxsmall"):
                _show(case, report.mapping.names, number)


def _show(case: WorstCase, names: tuple[str, ...], number: int) -> None:
    result = case.result
    label, answer = names[result.label], names[result.answer]
    shown = case.picture if case.overlay is None else case.overlay
    st.image(shown, width="stretch", alt=f"{result.path}: {label} taken for {answer}")
    no_map = ", no heat map of it" if case.overlay is None else ""
    st.html(
        f'<p class="mi-why"><b>{escaped(label)}</b> taken for <b>{escaped(answer)}</b>, '
        f"{human_share(result.confidence)} sure{no_map}<br>{escaped(result.path)}</p>"
    )
    if st.button("Explain", key=f"worst-{number}", icon=":material/visibility:", help=plain(f"Open {result.path}")):
        with said():
            pictures.take_picture(result.path.rpartition("/")[2], case.data)
            st.switch_page("pages/explain.py")
