"""Open: which file do you want to look at?"""

import time

import streamlit as st

from inspector.units import counted, human_bytes, human_duration
from inspector.web import pasting, provisional_panel, samples, session
from inspector.web.addresses import address_box
from inspector.web.components import title
from inspector.web.dropzone import drop_zone, view_of_upload
from inspector.web.guard import said
from inspector.web.run.choice import take as take_run
from inspector.web.server_paths import is_folder, listing, named, server_root, store_path
from inspector.web.shelf import show, show_folder
from inspector.web.text import escaped, plain

CHIPS, ACROSS = 9, 3
PATH_CHOSEN = "server-path-chosen"


def offer(sample: samples.Sample) -> None:
    """A button that opens a sample."""
    if st.button(plain(sample.title), key=f"sample-{sample.id}", width="stretch"):
        with said():
            stored = samples.store(sample)
            if sample.page == "run":
                take_run(stored)
                st.switch_page("pages/run.py")
            show(stored, sample.file)


title(
    "Open a checkpoint",
    "Model Inspector says what it is, why it does not load and where the model looks, and gives back a repaired file.",
)

stored = drop_zone(ahead=True)
if stored is not None:
    show(stored)
on_its_way = view_of_upload()
if on_its_way is not None:
    provisional_panel.draw(on_its_way)
    # Whatever opens something else would end the upload.
    st.stop()

chips = samples.chips()
if chips:
    st.markdown("**Try one**")
    for first in range(0, CHIPS, ACROSS):
        for place, sample in zip(st.columns(ACROSS), chips[first : first + ACROSS], strict=False):
            with place.container(key=f"card-{sample.id}", gap="xsmall"):
                offer(sample)
                st.caption(plain(sample.says))
    if chips[CHIPS:]:
        with st.popover("More", icon=":material/more_horiz:"):
            for sample in chips[CHIPS:]:
                offer(sample)

if server_root() is not None:
    offered = listing()
    box, go = st.columns([6, 1], vertical_alignment="bottom")
    choice = box.selectbox(
        "Or a file or folder on this server",
        [*offered.folders, *offered.files],
        index=None,
        filter_mode="contains",
        placeholder=f"{offered.says} files in {counted(len(offered.folders), 'folder')}",
        accept_new_options=True,
        key="server-path",
        # Enter, or a line of the list, is all that it takes; the button is for one that could not be opened before.
        on_change=lambda: st.session_state.update({PATH_CHOSEN: True}),
    )
    asked = go.button("Open it", disabled=choice is None, key="open-server-path", width="stretch")
    if (st.session_state.pop(PATH_CHOSEN, False) or asked) and choice:
        with said():
            path = named(choice, (*offered.folders, *offered.files))
            if is_folder(path):
                show_folder(path)
            show(store_path(path))
    if not offered.lists_all:
        st.caption(
            f"{counted(len(offered.files), 'file')} of {offered.says} can be chosen here. For the others choose their "
            "folder, which is a table of all its files, or type a path."
        )

if address_box() is not None:
    st.switch_page("pages/overview.py")

with st.expander(
    "Or paste an error of loading or running a model, or the code that loads", icon=":material/content_paste:"
):
    pasting.paste_box("open")

recent = session.recent()
if recent:
    st.markdown("**Recent**")
for entry in recent:
    name, size, when, open_it, drop_it = st.columns([6, 2, 2, 1.4, 1.4], vertical_alignment="center")
    name.html(f"<b>{escaped(entry.hand.name)}</b>")
    size.caption(human_bytes(session.nbytes_of(entry.hand)))
    seconds = time.time() - entry.at
    when.caption("just now" if seconds < 60 else f"{human_duration(seconds)} ago")
    if open_it.button("Open", key=f"recent-{entry.hand.sha256}"):
        show(session.stored(entry.hand), entry.hand.name)
    if drop_it.button("Forget", key=f"forget-{entry.hand.sha256}", type="tertiary"):
        session.forget(entry.hand)
        st.rerun()
