"""Several pictures at once: one sheet to look at, one table for a spreadsheet, and whether they can be trusted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from inspector.errors import InspectorError
from inspector.render.explained_table import row_of, row_of_error, table_csv
from inspector.render.overlay import png_bytes
from inspector.render.scores import share_text
from inspector.render.sheet import Cell, cell_of, findings_line, sheet
from inspector.units import counted, human_duration
from inspector.web import jobs
from inspector.web.explain import looking
from inspector.web.explain.answer import Naming, class_label, named
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import TYPES, Picture, sample_pictures
from inspector.web.explain.several_trust import show_trust_of_pictures
from inspector.web.text import plain

if TYPE_CHECKING:
    from inspector.cam.live import Look
    from inspector.cam.spec import MapSpec
    from inspector.progress import Progress

MOST_PICTURES = 200
_ACROSS = 4
_BEST, _SAME = "each picture's best class", "the class chosen above"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """sheet: PNG. table: CSV. count: of the maps. failed: (picture, why)."""

    sheet: bytes
    table: str
    count: int
    failed: tuple[tuple[str, str], ...]


def show_several(subject: Subject, spec: MapSpec, target: int, naming: Naming) -> None:
    """Take pictures, say what they cost, work behind the page, show the sheet and what was measured.

    target: the class chosen above.
    """
    from inspector.cam.live import Kind

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
    digest = hashlib.sha256("".join(picture.sha256 + picture.name for picture in taken).encode()).hexdigest()
    colour_map = str(st.session_state.get("colour-map", "viridis"))
    key = ("several", subject.key, spec, wanted, naming, colour_map, digest)
    about = human_duration(len(taken) * seen.seconds_of_one(spec))
    says = f"Make the sheet · {counted(len(taken), 'picture')}, about {about}"

    def work(progress: Progress) -> Made:
        return make_sheet(seen, subject, taken, spec, wanted, naming, colour_map, progress)

    if start_button(key, Made, says, name="several", icon=":material/grid_view:"):
        made = jobs.await_job(key, Made, work, title=f"Looking at {counted(len(taken), 'picture')}")
        if made is not None:
            _show(made)
    show_trust_of_pictures(subject, spec, taken, wanted, naming, digest)


def _show(made: Made) -> None:
    for name, says in made.failed:
        st.warning(f"{plain(name)}: {plain(says)}", icon=":material/warning:")
    if not made.count:
        return
    st.image(made.sheet, width="stretch", alt="Contact sheet", caption=counted(made.count, "map"))
    with st.container(horizontal=True):
        download_buttons([("Sheet (PNG)", made.sheet, "sheet.png"), ("Table (CSV)", made.table, "maps.csv")])


def start_button(key: Hashable, kind: type[object], says: str, *, name: str, icon: str) -> bool:
    """Whether the work of this key was started, by this click or before, or its result is there; else its button,
    which says what it will cost."""
    if jobs.is_known(key) or jobs.finished(key, kind) is not None:
        return True
    return jobs.offer(lambda: st.button(says, key=f"{name}-start", type="primary", icon=icon))


def download_buttons(files: Sequence[tuple[str, bytes | str | Callable[[], bytes | str], str]]) -> None:
    """(what it is, the file or what makes it when it is asked for, its name) of each, side by side."""
    for text, data, name in files:
        st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)


def make_sheet(
    seen: Look,
    subject: Subject,
    taken: list[Picture],
    spec: MapSpec,
    target: int | None,
    naming: Naming,
    colour_map: str,
    progress: Progress,
) -> Made:
    """One map of each picture; one that cannot be read or explained is said and left out. No Streamlit calls."""
    from inspector.cam.explain import explain_many
    from inspector.cam.inputs.picture import open_picture

    model = seen.twin()
    setting = replace(looking.setting_of(subject, naming), categories=named(seen, naming))
    cells: list[Cell] = []
    rows = []
    failed: list[tuple[str, str]] = []
    for number, one in enumerate(taken):
        progress(number, len(taken), one.name)
        try:
            picture = open_picture(one.data)
            (made,) = explain_many(model, [picture], spec.request, setting, targets=target)
        except InspectorError as error:
            failed.append((one.name, error.says))
            rows.append(row_of_error(error.says, checkpoint=subject.hand.name, picture=one.name))
            continue
        rows.append(row_of(made, checkpoint=subject.hand.name, picture=one.name, threshold=0.5))
        lines = (one.name, f"{class_label(made.target)} {share_text(made.target)}", *findings_line(made))
        cells.append(cell_of(picture, made, lines, colour_map=colour_map, opacity=0.5))
    grid = [cells[start : start + _ACROSS] for start in range(0, len(cells), _ACROSS)]
    return Made(
        sheet=png_bytes(sheet(grid)) if cells else b"", table=table_csv(rows), count=len(cells), failed=tuple(failed)
    )
