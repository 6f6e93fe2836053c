"""The singular values of one tensor, once somebody asks for them: they take far longer than what else is shown."""

from __future__ import annotations

import numpy as np
import streamlit as st

from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.health.spectrum_report import ROUNDING, Spectrum, SpectrumReport
from inspector.render import weight_figures as plots
from inspector.render.alpha_words import ALPHA_IS_CONTESTED, alpha_words
from inspector.units import counted, human_shape
from inspector.web import jobs, measuring
from inspector.web.charts import draw_chart
from inspector.web.components import Figure, figures, finding_cards
from inspector.web.session import Hand
from inspector.web.text import plain, visible


def spectrum_view(hand: Hand, state: StateDict | None, tensor: TensorInfo) -> None:
    """A button, then the work with its progress, then the curve. Raises what the work raises."""
    job = measuring.spectrum_job(hand, state, tensor)
    if not jobs.is_known(job) and not jobs.offer(_offer):
        return
    found: SpectrumReport | None = jobs.await_job(job, title="Decomposing the matrix")
    if found is None:
        return
    for _, why in found.skipped:
        st.info(f"No spectrum: {plain(why)}.", icon=":material/info:")
    for one in found.spectra:
        _show(one)
    finding_cards(found.findings)


def _offer() -> bool:
    st.caption(
        "Its singular values, as a matrix with a row per output: how strong it is, how many directions it uses, how "
        "they fall off."
    )
    return st.button("Compute the spectrum", key="spectrum-start", icon=":material/show_chart:", type="primary")


def _show(one: Spectrum) -> None:
    of = f"of {one.side:,}"
    row = [
        Figure(label="matrix", says=human_shape((one.rows, one.columns))),
        Figure(label="spectral norm", says=measuring.number(one.spectral_norm), exact=repr(one.spectral_norm)),
        Figure(label="stable rank", says=f"{one.stable_rank:.1f} {of}", exact=repr(one.stable_rank)),
    ]
    if one.effective_rank is not None:
        row.append(
            Figure(label="effective rank", says=f"{one.effective_rank:.1f} {of}", exact=repr(one.effective_rank))
        )
    law = one.power_law
    if law is not None:
        row.append(Figure(label=f"alpha, {law.tail:,} in the tail", says=alpha_words(law), exact=repr(law.alpha)))
        row.append(Figure(label="distance D", says=f"{law.distance:.2f}", exact=repr(law.distance)))
    figures(row)
    if one.effective_rank is None:
        st.caption(
            f"A norm and a stable rank alone: with a shorter side of {one.side:,} the singular values themselves would "
            "take too long."
        )
        return
    draw_chart(
        plots.spectrum_figure(one),
        key="spectrum",
        alt=f"Singular values of {visible(one.name)}, largest first",
    )
    notes = [_vanished(one)] if _vanished(one) else []
    notes.append(
        ALPHA_IS_CONTESTED
        if law is not None
        else "Fewer than 50 singular values, or all equal: no power law is fitted."
    )
    st.caption(plain(" ".join(notes)))


def _vanished(one: Spectrum) -> str:
    values = np.frombuffer(one.values, np.float64)
    lost = int(np.count_nonzero(values < ROUNDING * values[0]))
    return f"{counted(lost, 'value')} of {one.side:,} below a ten-millionth of the largest not drawn." if lost else ""
