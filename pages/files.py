"""Files: which of these many files is what?"""

import streamlit as st

from inspector.render import files_words
from inspector.survey.report import RowKind, SurveyRow
from inspector.units import counted, human_duration
from inspector.web import files_table, remote_archives, shelf
from inspector.web.components import finding_cards, title
from inspector.web.guard import said
from inspector.web.run.choice import take_shelf
from inspector.web.server_paths import server_root
from inspector.web.text import plain, visible

held = shelf.current()
if held is None:
    title("Files", "Which of these many files is what?")
    with st.container(border=True, key="empty-state"):
        st.markdown(
            "A folder or an archive of many files as a table: what each of them is, its worst finding, and a way to "
            "open it."
        )
        st.page_link("pages/open.py", label="Drop a folder or an archive", icon=":material/upload_file:")
        if server_root() is not None:
            st.page_link("pages/open.py", label="Choose a folder on this server", icon=":material/folder_open:")
    st.stop()
title(held.name, "Which of these files is what? A row each, the worst first.")
survey = shelf.survey(held)
if survey is None:
    st.skeleton(height=420)
    st.stop()

if held.is_elsewhere:
    remote_archives.draw_line(held.sha256, held.name)
rows = files_words.rows_of(survey, held.name if held.sha256 else "")
archive = files_words.of_archive(survey)
st.html(f'<p class="mi-answer"><b>{visible(files_words.answer(rows, archive))}</b></p>')
finding_cards(archive)


def open_row(of: shelf.Shelf, row: SurveyRow) -> None:
    """Take the file in hand and go on to it."""
    bar = st.progress(0.0, text="Taking it out")

    def show(done: int, total: int | None, note: str) -> None:
        bar.progress(min(1.0, done / total) if total else 0.0)

    with said():
        try:
            shelf.take(of, row, show)
        finally:
            bar.empty()
        st.switch_page("pages/overview.py")


@st.fragment
def table(of: shelf.Shelf) -> None:
    """A click redraws this part only."""
    chosen = files_table.choose(rows, f"files-chosen/{of.sha256 or of.folder}")
    if chosen is None:
        st.caption("Click a name to open the file, anything else of its row to see what was found in it.")
        return
    path, row = chosen.row.path, chosen.row.row
    if chosen.opens and row.kind is not RowKind.OTHER:
        open_row(of, row)
    with st.container(border=True):
        left, right = st.columns([5, 1.4], vertical_alignment="center")
        left.markdown(f"**{plain(visible(path))}**  \n{plain(visible(files_words.what_it_is(row)))}")
        if row.kind is not RowKind.OTHER and right.button(
            "Open it", type="primary", icon=":material/arrow_forward:", key="open-row", width="stretch"
        ):
            open_row(of, row)
        # An archive has the worst of its members beside its own.
        if row.says and all(finding.says != row.says for finding in row.findings):
            st.markdown(plain(visible(row.says)))
        finding_cards(row.findings, none="" if row.says else "No finding by its header.")


table(held)
for what in survey.skipped:
    st.caption(plain(f"Not looked at: {what}"))
with st.container(horizontal=True):
    st.download_button(
        "Table as CSV",
        lambda: files_words.csv_of(rows),
        file_name="files.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
    if not held.is_elsewhere and st.button("Read them as one training", icon=":material/timeline:", key="files-run"):
        take_shelf(held)
        st.switch_page("pages/run.py")
st.caption(
    f"{counted(len(rows), 'file')} looked at in {human_duration(survey.seconds)}, headers alone. Nothing was run."
)
