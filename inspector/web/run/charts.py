"""What a run's numbers look like over time: curves, layers, histograms. What is chosen stands in the address."""

from __future__ import annotations

import streamlit as st

from inspector.render import run_figures as plots
from inspector.render.run_curves import Curve, curves_of
from inspector.render.run_measures import LAYER_MEASURES, UPDATE
from inspector.run.groups import By, Group, groups_of, proposed_row
from inspector.run.report import RunReport
from inspector.units import counted, human_shape, shorten_middle
from inspector.web.charts import draw_chart
from inspector.web.text import plain, visible

# Curves before somebody chooses, side by side.
_FIRST_CURVES, _ACROSS = 6, 3
_STRIP, _LINES, _ONE_SCALE = "heat strip", "lines", "lines, one scale"
_VIEWS = (_STRIP, _LINES, _ONE_SCALE)
# Rows that a screen has room for.
_MOST_ROWS, _MOST_LANES = 300, 40


@st.fragment
def show_curves(report: RunReport) -> None:
    """What the checkpoints state, and what event files beside them have."""
    curves = {_called(curve): curve for curve in curves_of(report)}
    if not curves:
        return
    st.header("What the files state")
    chosen = list(curves)[:_FIRST_CURVES]
    if len(curves) > len(chosen):
        chosen = st.multiselect(
            f"Of {counted(len(curves), 'curve')}", list(curves), default=chosen, key="run-curves", bind="query-params"
        )
    # Four are two by two, not three and one.
    across = 2 if len(chosen) in (2, 4) else _ACROSS
    for start in range(0, len(chosen), across):
        columns = st.columns(across)
        for column, name in zip(columns, chosen[start : start + across], strict=False):
            with column:
                _show_curve(name, curves[name])


def _called(curve: Curve) -> str:
    return visible(f"{curve.name} ({curve.log})" if curve.logged else curve.name)


def _show_curve(name: str, curve: Curve) -> None:
    from_whom = "log" if curve.logged else "checkpoints"
    st.markdown(f"**{plain(shorten_middle(visible(curve.name), 36))}** :small[{from_whom}]")
    draw_chart(plots.curve_figure(curve), key=f"curve-{name}", alt=f"{name} over {curve.axis}s")


def choose_by() -> By:
    """What makes a row; the downloads follow it, so that the whole page does."""
    chosen = st.segmented_control(
        "A row for each", [by.value for by in By], default=By.MODULE.value, required=True, key="run-by",
        bind="query-params",
    )  # fmt: skip
    return By(chosen) if chosen in list(By) else By.MODULE


@st.fragment
def show_layers(report: RunReport, by: By) -> None:
    """One number of each group over the run."""
    titles = {measure.title: measure for measure in LAYER_MEASURES}
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    title = left.segmented_control(
        "Show", list(titles), default=UPDATE.title, required=True, key="run-show", bind="query-params"
    )
    measure = titles.get(str(title), UPDATE)
    view = right.segmented_control(
        "As", _VIEWS, default=_STRIP, required=True, key="run-view", bind="query-params"
    )  # fmt: skip
    groups = [group for group in groups_of(report, by) if (measure.values(report, group) >= 0).any()]
    if not groups:
        st.caption(f"{plain(measure.says)} There is nothing of it in this run.")
        return
    most = _MOST_ROWS if view == _STRIP else _MOST_LANES
    left_out = f" The first {most} of {len(groups):,}; the CSV has all." if len(groups) > most else ""
    st.caption(plain(measure.says + left_out))
    shown = groups[:most]
    figure = (
        plots.strip_figure(report, shown, measure)
        if view == _STRIP
        else plots.lanes_figure(report, shown, measure, one_scale=view == _ONE_SCALE)
    )
    draw_chart(figure, key=f"layers-{measure.id}-{view}", alt=f"{measure.title} of each {by} over the run")


@st.fragment
def show_histograms(report: RunReport) -> None:
    """How the numbers of one tensor lay at each checkpoint."""
    st.header("Histograms over time")
    names = [visible(tensor.name) for tensor in report.tensors]
    first = names[proposed_row(report)]
    chosen = st.selectbox("Tensor", names, index=names.index(first), key="run-tensor", bind="query-params")
    row = names.index(chosen if chosen in names else first)
    tensor = report.tensors[row]
    st.caption(
        plain(
            f"{human_shape(tensor.shape)} of {tensor.dtype}, {tensor.role}. A column per checkpoint; colour is the "
            "share of its numbers in the bin, the line their median, 5 and 95 % dotted."
        )
    )
    draw_chart(
        plots.histogram_figure(report, Group(name=tensor.name, rows=(row,))),
        key="histograms",
        alt=f"Histograms of {visible(tensor.name)} over the run",
    )
