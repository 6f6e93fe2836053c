"""An evaluation on the page: the answer, the confusion matrix, classes, curves, what was left out, files."""

from __future__ import annotations

import streamlit as st

from inspector.evaluate.report import ClassCurves, Evaluation
from inspector.evaluate.sentences import answer, details, figure_text, interval_text
from inspector.render import evaluation as tables
from inspector.render import evaluation_figures as plots
from inspector.render.json import as_json
from inspector.units import counted, human_share
from inspector.web.charts import draw_chart
from inspector.web.components import Figure, figures
from inspector.web.text import escaped, mono, plain
from inspector.web.trees import table

_RECALL, _ROC, _CALIBRATION = "Precision and recall", "ROC", "Calibration"
_PARTS = (_RECALL, _ROC, _CALIBRATION)
# Classes whose curves are drawn before somebody chooses.
_FIRST_CURVES = 6


def show_answer(report: Evaluation) -> None:
    """The sentence, what it rests on, and the figures in a row."""
    st.html(f'<p class="mi-answer">{escaped(answer(report))}</p>')
    st.html("".join(f'<p class="mi-why">{escaped(says)}</p>' for says in details(report)))
    means = report.means
    row = [Figure(label="right", says=human_share(report.top1.mean), exact=interval_text(report.top1))]
    if report.top5 is not None:
        top5 = human_share(report.top5.mean)
        row.append(Figure(label="among the first five", says=top5, exact=interval_text(report.top5)))
    over = f"mean over {counted(means.classes, 'class', 'classes')}, each counting the same"
    row += [
        Figure(label="recall, mean", says=figure_text(means.recall), exact=over),
        Figure(label="precision, mean", says=figure_text(means.precision), exact=over),
        Figure(label="F1, mean", says=figure_text(means.f1), exact=over),
        Figure(label="average precision, mean", says=figure_text(means.average_precision), exact=over),
        Figure(label="area under ROC, mean", says=figure_text(means.area_under_roc), exact=over),
        Figure(label="calibration error", says=figure_text(report.calibration.error), exact="0 is best; 15 bins"),
    ]
    figures(row)


@st.fragment
def show_matrix(report: Evaluation) -> None:
    """Which class is taken for which."""
    left, right = st.columns([3, 2])
    with left:
        st.header("Confusion matrix")
        shown, _ = tables.confusion_matrix(report)
        rest = len(report.classes) - len(shown)
        more = f" The {len(shown)} classes with the most errors; {rest:,} others are in the table." if rest > 0 else ""
        st.caption(f"A row per class, a column per answer; colour is the share of the row.{more}")
        draw_chart(plots.confusion_figure(report), key="confusion", alt="Confusion matrix: class by answer")
    with right:
        st.header("Most often confused")
        listing = tables.confused_listing(report, 12)
        if not listing.rows:
            st.caption("Nothing is: every picture was answered right.")
            return
        table(listing.heads, [[escaped(cell) for cell in row] for row in listing.rows], numeric=listing.numeric)
        if listing.more:
            st.caption(listing.more)


def show_classes(report: Evaluation) -> None:
    """A row for each class, the lowest recall first."""
    st.header("By class")
    listing = tables.classes_listing(report)
    rows = [[escaped(cell) for cell in row] for row in listing.rows]
    table(listing.heads, rows, numeric=listing.numeric, key="classes")


@st.fragment
def show_curves(report: Evaluation) -> None:
    """Curves of chosen classes, and whether its shares are to be believed."""
    st.header("Curves")
    part = st.segmented_control("Curve", _PARTS, default=_RECALL, required=True, key="evaluation-curve")
    if part == _CALIBRATION:
        st.caption(
            "Answers by how sure they are, in 15 bins; the dotted line is a model that is right as often as it says. "
            "Softmax of the model's own scores: no temperature was fitted."
        )
        chart, says = plots.reliability_figure(report.calibration), "Accuracy by confidence"
    else:
        chosen = _chosen_classes(report)
        st.caption("Each class against all others, by its softmax share; a threshold for each distinct share.")
        chart, says = plots.curves_figure(report, chosen, roc=part == _ROC), str(part)
    draw_chart(chart, key=f"curve-{part}", alt=says)


def _chosen_classes(report: Evaluation) -> list[ClassCurves]:
    by_index = {one.index: one for one in report.curves}
    first = list(by_index)[:_FIRST_CURVES]
    chosen = first
    if len(by_index) > _FIRST_CURVES:
        chosen = st.multiselect(
            "Classes, lowest average precision first",
            list(by_index),
            default=first,
            format_func=lambda index: plain(report.mapping.names[index]),
            key=f"evaluation-classes-{report.data_digest[:12]}",
        )
    return [by_index[index] for index in chosen]


def show_not_counted(report: Evaluation) -> None:
    """What could not be read, and what is no picture."""
    rows = [*report.unread, *report.left_out]
    if not rows:
        return
    hidden = report.left_out_count - len(report.left_out)
    with st.expander(f"Not counted: {len(rows) + hidden:,}", icon=":material/visibility_off:"):
        table(("What", "Why"), [(mono(what, 90), escaped(why)) for what, why in rows], key="not-counted")
        if hidden:
            st.caption(f"and {hidden:,} more files.")


def show_files(report: Evaluation) -> None:
    """The numbers to take home."""
    with st.container(horizontal=True, key="evaluation-files"):
        for text, make, name in (
            ("Pictures (CSV)", lambda: tables.pictures_csv(report), "pictures.csv"),
            ("Pictures (TSV)", lambda: tables.tsv_text(*tables.pictures_table(report)), "pictures.tsv"),
            ("Classes (TSV)", lambda: tables.tsv_text(*tables.classes_table(report)), "classes.tsv"),
            ("Report (JSON)", lambda: as_json(report) + "\n", "evaluation.json"),
        ):
            st.download_button(text, make, file_name=name, on_click="ignore", icon=":material/download:", key=name)
