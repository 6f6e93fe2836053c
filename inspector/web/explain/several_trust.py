"""Can maps of several pictures be trusted: measured as a job, means with their intervals, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from inspector.errors import InspectorError
from inspector.render.json import as_json
from inspector.units import counted, human_duration
from inspector.web import jobs, reports
from inspector.web.explain import looking
from inspector.web.explain.answer import Naming
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import Picture
from inspector.web.text import escaped, plain
from inspector.web.trees import table

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from PIL import Image

    from inspector.cam.spec import MapSpec
    from inspector.cam.trust.assess import Cost
    from inspector.cam.trust.pictures import TrustOfPictures
    from inspector.progress import Progress

# Which of the tables a visitor sees first; the others unfold.
_FIRST = "answers"


def show_trust_of_pictures(
    subject: Subject, spec: MapSpec, taken: Sequence[Picture], target: int | None, naming: Naming, digest: str
) -> None:
    """Estimate, then the work, then the means. target: None for each picture's best. digest: of the pictures."""
    from inspector.cam.trust.pictures import TrustOfPictures, assess_pictures

    key = ("several-trust", subject.key, spec, target, naming, digest)
    known = jobs.is_known(key) or jobs.finished(key, TrustOfPictures) is not None
    if not known and not jobs.offer(lambda: _offer(key, subject, spec, taken, target, naming)):
        return
    seen = looking.look_at(subject)
    setting = looking.setting_of(subject, naming)
    named = [(one.name, partial(_opened, one.data)) for one in taken]

    def work(progress: Progress) -> TrustOfPictures:
        return assess_pictures(seen.twin(), named, spec.request, setting, target=target, progress=progress)

    found = jobs.await_job(key, TrustOfPictures, work, title=f"Measuring {counted(len(taken), 'picture')}")
    if found is not None:
        _show(found)


def _offer(
    key: Hashable, subject: Subject, spec: MapSpec, taken: Sequence[Picture], target: int | None, naming: Naming
) -> bool:
    try:
        about = human_duration(_cost(key, subject, spec, tuple(taken), target, naming).seconds)
    except InspectorError as error:
        st.caption(plain(f"None of the pictures can be measured. {error.says}"))
        return False
    return st.button(
        f"Measure whether they can be trusted · {counted(len(taken), 'picture')}, about {about}",
        key="several-trust-start",
        icon=":material/science:",
        help="Each map beside noise, a blob in the middle and the edges of the picture; means with 95 % intervals.",
    )


@st.cache_resource(max_entries=32, show_spinner="Timing one pass …")
def _cost(
    key: Hashable,
    _subject: Subject,
    _spec: MapSpec,
    _taken: tuple[Picture, ...],
    _target: int | None,
    _naming: Naming,
) -> Cost:
    from inspector.cam.trust.pictures import cost_of_pictures

    named: list[tuple[str, Callable[[], Image.Image]]] = [(one.name, partial(_opened, one.data)) for one in _taken]
    seen = looking.look_at(_subject)
    setting = looking.setting_of(_subject, _naming)
    with reports.torch_lock:
        return cost_of_pictures(seen.model, named, _spec.request, setting, target=_target)


def _opened(data: bytes) -> Image.Image:
    from inspector.cam.inputs.picture import open_picture

    return open_picture(data)


def _show(found: TrustOfPictures) -> None:
    from inspector.render.trust_pictures import listings, sentences, trust_of_pictures_csv

    first, *rest = sentences(found)
    st.markdown(f"**{plain(first)}**")
    for says in rest:
        st.caption(plain(says))
    for one in listings(found):
        rows = [[escaped(cell) for cell in row] for row in one.rows]
        with st.container() if one.key == _FIRST else st.expander(one.title):
            table(one.heads, rows, numeric=one.numeric, key=f"trust-{one.key}")
            if one.more:
                st.caption(one.more)
    with st.container(horizontal=True, key="several-trust-files"):
        for text, data, name in (
            ("Numbers (CSV)", partial(trust_of_pictures_csv, found), "trust-of-pictures.csv"),
            ("Report (JSON)", partial(as_json, found), "trust-of-pictures.json"),
        ):
            st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)
