"""Several pictures at once: one sheet to look at, one table for a spreadsheet, and whether they can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from inspector.cam.columns import Kind
from inspector.jobs.asked import SheetMade
from inspector.jobs.job import Job
from inspector.jobs.subjects import Naming, Seen, Wanted
from inspector.units import counted, human_duration
from inspector.web import jobs
from inspector.web.explain import looking
from inspector.web.explain.answer import named
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import TYPES, Picture, sample_pictures
from inspector.web.explain.several_trust import show_trust_of_pictures
from inspector.web.text import plain

MOST_PICTURES = 200
_BEST, _SAME = "each picture's best class", "the class chosen above"


def show_several(subject: Subject, spec: Wanted, target: int, naming: Naming) -> None:
    """Take pictures, say what they cost, work behind the page, show the sheet and what was measured.

    target: the class chosen above.
    """
    seen = looking.look_at(subject)
    if seen.kind is not Kind.CLASSES:
        st.info("Sheets of several pictures are for classifiers; the command line does them for pixels and boxes.")
        return
    uploads = st.file_uploader(
        "Pictures", type=TYPES, accept_multiple_files=True, key="several", max_upload_size=50,
        help=f"At most {MOST_PICTURES}. A folder can be dropped here too.",
    )  # fmt: skip
    samples = st.toggle("With the pictures that come with the samples", value=not uploads, key="several-samples")
    which = st.segmented_control("Explain", (_BEST, _SAME), default=_BEST, required=True, key="several-class")
    taken = [Picture(name=path.name, data=path.read_bytes()) for path in (sample_pictures() if samples else ())]
    taken += [Picture(name=upload.name, data=upload.getvalue()) for upload in uploads or ()]
    if not taken:
        st.caption("A sheet with one map for each picture appears here.")
        return
    if len(taken) > MOST_PICTURES:
        st.warning(f"{len(taken)} pictures: the first {MOST_PICTURES} are taken.", icon=":material/warning:")
        taken = taken[:MOST_PICTURES]
    wanted = target if which == _SAME else None
    refs, names = tuple(picture.ref for picture in taken), tuple(picture.name for picture in taken)
    colour_map = str(st.session_state.get("colour-map", "viridis"))
    job = subject.job("sheet", refs, names, spec, wanted, naming_of_sheet(seen, naming), colour_map)
    about = human_duration(len(taken) * looking.cost_of(subject, spec).whole)
    says = f"Make the sheet · {counted(len(taken), 'picture')}, about {about}"
    if start_button(job, says, name="several", icon=":material/grid_view:"):
        made: SheetMade | None = jobs.await_job(job, title=f"Looking at {counted(len(taken), 'picture')}")
        if made is not None:
            _show(made)
    show_trust_of_pictures(subject, spec, refs, names, wanted, naming)


def naming_of_sheet(seen: Seen, naming: Naming) -> Naming:
    """Names that do not fit the answer are not used."""
    return replace(naming, names=named(seen, naming))


def _show(made: SheetMade) -> None:
    for name, says in made.failed:
        st.warning(f"{plain(name)}: {plain(says)}", icon=":material/warning:")
    if not made.count:
        return
    st.image(made.sheet, width="stretch", alt="Contact sheet", caption=counted(made.count, "map"))
    with st.container(horizontal=True):
        download_buttons([("Sheet (PNG)", made.sheet, "sheet.png"), ("Table (CSV)", made.table, "maps.csv")])


def start_button(job: Job, says: str, *, name: str, icon: str) -> bool:
    """Whether this work was started, by this click or before, or its result is there; else its button,
    which says what it will cost."""
    if jobs.is_known(job):
        return True
    return jobs.offer(lambda: st.button(says, key=f"{name}-start", type="primary", icon=icon))


def download_buttons(files: Sequence[tuple[str, bytes | str | Callable[[], bytes | str], str]]) -> None:
    """(what it is, the file or what makes it when it is asked for, its name) of each, side by side."""
    for text, data, name in files:
        st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)
