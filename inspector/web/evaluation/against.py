"""Another checkpoint on the same pictures: which has more right, and whether that may be chance."""

from __future__ import annotations

import streamlit as st

from inspector.evaluate.compare import compare
from inspector.evaluate.report import Comparison, Evaluation
from inspector.evaluate.sentences import answer, comparison_text
from inspector.jobs.asked import DataFacts
from inspector.render.json import as_json
from inspector.web import jobs, session
from inspector.web.evaluation.asked import of_other
from inspector.web.explain.choices import choose_one
from inspector.web.session import Hand
from inspector.web.text import escaped, mono
from inspector.web.trees import table

_SHOWN = 50


def show_against(report: Evaluation, hand: Hand, data: DataFacts) -> None:
    """A file of this session beside the one in hand, by McNemar's exact test."""
    st.header("Against another checkpoint")
    others = {one.hand: one.hand.name for one in session.recent() if one.hand.sha256 != hand.sha256}
    other = choose_one(
        "Compare with",
        others,
        f"evaluation-against-{hand.sha256[:12]}",
        first=None,
        placeholder="a file you opened before" if others else "open another file first, then come back",
        says="The same pictures through another file of this session, held against this one picture by picture.",
    )
    if other is None:
        return
    asked = of_other(other, data)
    second: Evaluation | None = jobs.await_job(asked.job, title=asked.title)
    if second is None:
        return
    found = compare(report, second)
    st.html(f'<p class="mi-answer">{escaped(comparison_text(found))}</p>')
    st.html(f'<p class="mi-why">{escaped(f"{other.name}: {answer(second)} {second.mapping.says}")}</p>')
    _show_table(found)


def _show_table(found: Comparison) -> None:
    head = ("", f"{found.second} right", f"{found.second} wrong")
    rows = [
        (escaped(f"{found.first} right"), f"{found.both:,}", f"{found.only_first:,}"),
        (escaped(f"{found.first} wrong"), f"{found.only_second:,}", f"{found.neither:,}"),
    ]
    table(head, rows, numeric=(1, 2), key="mcnemar")
    if found.changed:
        with st.expander(f"Pictures that one alone has right: {found.only_first + found.only_second:,}"):
            table(
                ("Picture", "Class", found.first, found.second),
                [
                    (mono(one.path, 60), escaped(one.label), escaped(one.first), escaped(one.second))
                    for one in found.changed[:_SHOWN]
                ],
                key="changed",
            )
    st.download_button(
        "Comparison (JSON)",
        lambda: as_json(found) + "\n",
        file_name="comparison.json",
        on_click="ignore",
        icon=":material/download:",
        key="comparison.json",
    )
