"""Can maps of several pictures be trusted: measured as a job, means with their intervals, class by class."""

from __future__ import annotations

import streamlit as st

from inspector.errors import InspectorError
from inspector.jobs.job import Job
from inspector.jobs.subjects import Naming, PictureRef, Wanted
from inspector.render.panels import PicturesPanel
from inspector.units import counted, human_duration
from inspector.web import jobs
from inspector.web.explain.looking import Subject
from inspector.web.text import escaped, plain
from inspector.web.trees import table

# Which of the tables a visitor sees first; the others unfold.
_FIRST = "answers"


def show_trust_of_pictures(
    subject: Subject,
    wanted: Wanted,
    pictures: tuple[PictureRef, ...],
    names: tuple[str, ...],
    target: int | None,
    naming: Naming,
) -> None:
    """Estimate, then the work, then the means. names: of the pictures. target: None for each picture's best."""
    asked = (pictures, names, wanted, target, naming)
    job = subject.job("pictures-trust", *asked)
    count = len(pictures)
    if not jobs.is_known(job) and not jobs.offer(lambda: _offer(subject.job("pictures-cost", *asked), count)):
        return
    found: PicturesPanel | None = jobs.await_job(job, title=f"Measuring {counted(count, 'picture')}")
    if found is not None:
        _show(found)


def _offer(cost: Job, count: int) -> bool:
    try:
        about = human_duration(jobs.ask(cost, says="Timing one pass"))
    except InspectorError as error:
        st.caption(plain(f"None of the pictures can be measured. {error.says}"))
        return False
    return st.button(
        f"Measure whether they can be trusted · {counted(count, 'picture')}, about {about}",
        key="several-trust-start",
        icon=":material/science:",
        help="Each map beside noise, a blob in the middle and the edges of the picture; means with 95 % intervals.",
    )


def _show(found: PicturesPanel) -> None:
    first, *rest = found.sentences
    st.markdown(f"**{plain(first)}**")
    for says in rest:
        st.caption(plain(says))
    for one in found.listings:
        rows = [[escaped(cell) for cell in row] for row in one.rows]
        with st.container() if one.key == _FIRST else st.expander(one.title):
            table(one.heads, rows, numeric=one.numeric, key=f"trust-{one.key}")
            if one.more:
                st.caption(one.more)
    with st.container(horizontal=True, key="several-trust-files"):
        for text, data, name in (
            ("Numbers (CSV)", found.csv, "trust-of-pictures.csv"),
            ("Report (JSON)", found.json, "trust-of-pictures.json"),
        ):
            st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)
