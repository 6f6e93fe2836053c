"""Zoo: which of all audited files are alike, and which are not well?"""

from typing import Any

import streamlit as st

from inspector.catalogue.listing import Asked, Question
from inspector.catalogue.parts import PartFolder
from inspector.web import zoo
from inspector.web.components import finding_cards, title
from inspector.web.guard import said
from inspector.web.text import plain, visible

title("Zoo", "Which of all audited files are alike, and which are not well?")
found = zoo.folder()
if found is None:
    with st.container(border=True, key="empty-state"):
        st.markdown(
            "All files of this server's audits: searched by path, network and tensor name, with duplicates and shared "
            "trunks by the digests of their tensors. Nothing was audited yet into the store that this server names. "
            "Its operator runs:"
        )
        st.code("inspector audit MODELS --store STORE --digest", language="sh", wrap_lines=True)
    st.stop()

st.html(f'<p class="mi-answer"><b>{visible(zoo.summary(found))}</b></p>')


def draw_way(place: str, key: str) -> None:
    """A button to the file, or why there is none."""
    relative = zoo.inside_root(place)
    if relative is None:
        st.caption("It lies outside the folder that this server opens to visitors.")
    elif st.button("Open it", type="primary", icon=":material/arrow_forward:", key=key):
        with said():
            zoo.open_file(relative)


@st.fragment
def draw_files(found: PartFolder) -> None:
    """A click redraws this part only."""
    row = zoo.choose_file(found)
    if row is None:
        st.caption("Choose a row to see what was found in it, and to open it.")
        return
    with st.container(border=True):
        st.markdown(f"**{plain(visible(row['path']))}**  \n{plain(visible(zoo.what_it_is(row)))}")
        draw_way(row["place"], "zoo-open")
        finding_cards(zoo.findings_of(found, row["file"]), none="No finding in the audit.")


def draw_copies(found: PartFolder) -> None:
    answer = zoo.ask(found, Asked(question=Question.SAME_FILES, most=zoo.MOST_ROWS))
    if not answer.rows:
        st.caption("No two files are known to be the same. An audit that takes digests tells it.")
        return
    columns = {
        "how": "The same",
        "files": "Files",
        "nbytes": "Bytes of one",
        "spare_nbytes": "Bytes to spare",
        "paths": "Where",
    }
    row = zoo.choose_row(answer, columns, "zoo-copies", "Files that are there more than once")
    st.caption("The same weights: every tensor of the network bit for bit, under the same name, in any format.")
    if row is not None:
        with st.container(border=True):
            st.markdown("  \n".join(plain(visible(path)) for path in row["paths"]))


def draw_tensors(found: PartFolder) -> None:
    answer = zoo.ask(found, Asked(question=Question.SAME_TENSORS, most=zoo.MOST_ROWS))
    if not answer.rows:
        st.caption("No tensor is known to lie in two files. An audit that takes digests and reads numbers tells it.")
        return
    columns = {
        "name": "Tensor",
        "files": "Files",
        "dtype": "Type",
        "shape": "Shape",
        "nbytes": "Bytes of one",
        "spare_nbytes": "Bytes to spare",
        "in_file": "One of the files",
    }
    zoo.choose_row(answer, columns, "zoo-tensors", "Tensors that lie in more than one file")
    st.caption("Equal in type, shape and every byte. Tensors of one value (zeros, ones) are left out.")


@st.fragment
def draw_trunks(found: PartFolder) -> None:
    """A click redraws this part only."""
    answer = zoo.ask(found, Asked(question=Question.TRUNKS, most=zoo.MOST_ROWS))
    if not answer.rows:
        st.caption("No two files share most of their weights. An audit that takes digests and reads numbers tells it.")
        return
    columns = {
        "trunk": "Trunk",
        "path": "File",
        "shares_with": "Shares with",
        "shared_tensors": "Tensors shared",
        "of_tensors": "Of its",
        "shared_nbytes": "Bytes shared",
    }
    row = zoo.choose_row(answer, columns, "zoo-trunks", "Files that share most of their weights")
    st.caption(
        "Files of one trunk share at least half of their tensors, bit for bit. Which came first, digests do not tell."
    )
    if row is not None:
        draw_pair(row)


def draw_pair(row: dict[str, Any]) -> None:
    with st.container(border=True):
        shared, own = row["shared_tensors"], row["of_tensors"]
        says = f"All {own:,} tensors" if shared == own else f"{shared:,} of {own:,} tensors"
        st.markdown(
            f"**{plain(visible(row['path']))}** and **{plain(visible(row['shares_with']))}**  \n"
            f"{says} of the first are in the other, bit for bit; tensors of one value are not counted."
        )
        one, other = zoo.inside_root(row["place"]), zoo.inside_root(row["with_place"])
        if one is None or other is None:
            st.caption("One of them lies outside the folder that this server opens to visitors.")
        elif st.button(
            "What changed, and what that proves", type="primary", icon=":material/compare_arrows:", key="zoo-compare"
        ):
            with said():
                zoo.compare(one, other)


PARTS = {"Files": draw_files, "Copies": draw_copies, "Shared tensors": draw_tensors, "Shared trunks": draw_trunks}
chosen = st.segmented_control("Show", list(PARTS), default="Files", required=True, key="zoo-part")
with said():
    PARTS[str(chosen)](found)
