"""One tensor: what the file declares, what one read over its numbers says, and a look at some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.findings import Finding
from inspector.health.initialisers import Family, Initialiser, initialisers_of
from inspector.health.spectra import may_have_spectrum
from inspector.render import weight_figures as plots
from inspector.units import counted, human_bytes, human_count, human_shape
from inspector.web import measuring
from inspector.web.charts import draw_chart
from inspector.web.components import Figure, figures, finding_cards
from inspector.web.guard import said
from inspector.web.session import Hand
from inspector.web.spectrum_view import spectrum_view
from inspector.web.text import escaped, mono, visible
from inspector.weights.look import TensorLook
from inspector.weights.report import TensorStatistics

_LINEAR, _LOG, _SYMLOG = "linear", "logarithmic counts", "logarithmic values"
_VIEWS = {
    "Histogram": "bar_chart",
    "Rows": "stacked_line_chart",
    "Values": "grid_on",
    "Filters": "photo_library",
    "Spectrum": "show_chart",
}


def tensor_panel(
    hand: Hand, tensor: TensorInfo, about: tuple[Finding, ...] = (), *, state: StateDict | None = None
) -> None:
    """about: findings that name it. state: the state dict that it is looked at in."""
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
    finding_cards(about)
    with said():
        statistics = measuring.tensor_statistics(hand, tensor)
        figures(measuring.statistics_figures(statistics))
        if statistics.decoding:
            st.caption(measuring.decoding_says(statistics))
        _views(hand, state, tensor, statistics)


def _views(hand: Hand, state: StateDict | None, tensor: TensorInfo, statistics: TensorStatistics) -> None:
    look: TensorLook = measuring.tensor_look(hand, tensor)
    draw: dict[str, Callable[[], None]] = {"Histogram": lambda: _histogram(tensor, statistics)}
    if statistics.rows is not None and statistics.rows.count > 1:
        draw["Rows"] = lambda: _rows(statistics)
    if look.first:
        draw["Values"] = lambda: _values(look)
    if look.filters is not None:
        draw["Filters"] = lambda: _filters(look)
    if may_have_spectrum(tensor) and tensor.numel:
        draw["Spectrum"] = lambda: spectrum_view(hand, state, tensor)
    chosen = st.segmented_control(
        "Look at",
        list(draw),
        default="Histogram",
        required=True,
        key=f"tensor-view-{'-'.join(draw)}",
        format_func=lambda name: f":material/{_VIEWS[name]}: {name}",
        label_visibility="collapsed",
    )
    draw[str(chosen)]()


def _histogram(tensor: TensorInfo, statistics: TensorStatistics) -> None:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    axes = left.segmented_control(
        "Axes", (_LINEAR, _LOG, _SYMLOG), default=_LINEAR, required=True, key="histogram-axes"
    )
    begins = initialisers_of(tensor.name, tensor.shape) if statistics.finite and axes == _LINEAR else ()
    over = right.selectbox(
        "Over how it begins",
        begins,
        index=None,
        format_func=_called,
        placeholder="an initialisation to compare with",
        key=f"initialisation-{tensor.shape}",
        disabled=not begins,
    )
    if axes == _SYMLOG:
        figure = plots.symlog_figure(statistics)
    else:
        figure = measuring.histogram_figure(statistics, logarithmic=axes == _LOG)
        if over is not None:
            figure = plots.with_initialisation(figure, statistics, _density(over))
    draw_chart(figure, key="histogram", alt=f"Histogram of {visible(tensor.name)}")


def _called(one: Initialiser) -> str:
    scale = "bound" if one.family is Family.UNIFORM else "deviation"
    return f"{one.family.value}, {scale} {one.scale:.3g}: {one.says}"


def _density(one: Initialiser) -> plots.Density:
    return plots.Density(
        uniform=one.family is Family.UNIFORM,
        scale=one.scale if one.family is Family.UNIFORM else one.std,
        says=f"{one.family.value}, {one.scale:.3g}",
    )


def _rows(statistics: TensorStatistics) -> None:
    assert statistics.rows is not None
    st.caption(
        f"{counted(statistics.rows.count, 'row')} of {statistics.rows.length:,}: the mean and the largest magnitude of "
        "each. Dead rows are a foot at the left, outliers a peak at the right."
    )
    draw_chart(plots.rows_figure(statistics.rows), key="rows", alt="Rows by magnitude")


def _values(look: TensorLook) -> None:
    corner = look.corner
    if corner is not None:
        st.caption(
            f"Rows 0 to {corner.rows - 1:,} of {corner.of_rows:,}, columns 0 to {corner.columns - 1:,} of "
            f"{corner.of_columns:,}."
        )
        draw_chart(plots.corner_figure(corner), key="corner", alt="First rows and columns")
    listed = "".join(f"<li>{mono(repr(value), 30)}</li>" for value in look.first)
    st.html(f'<p class="mi-listed">First elements</p><ol class="mi-elements" start="0">{listed}</ol>')


def _filters(look: TensorLook) -> None:
    assert look.filters is not None
    made: Any = plots.filters_picture(look.filters)
    st.caption(
        f"{counted(look.filters.count, 'filter')} of {look.filters.of:,}, each over its own range; grey is zero."
    )
    st.image(np.asarray(made), alt="Filters of the layer side by side")
