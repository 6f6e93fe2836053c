"""Open: which file do you want to look at?"""

import time

import streamlit as st

from inspector.units import human_bytes
from inspector.web import pasting, samples, session
from inspector.web.components import title
from inspector.web.dropzone import drop_zone
from inspector.web.guard import said
from inspector.web.server_paths import list_files, server_root, store_path
from inspector.web.text import escaped, plain

CHIPS = 9


def show(hand: session.Hand | None) -> None:
    """Go on to what it is."""
    if hand is not None:
        st.switch_page("pages/overview.py")


def offer(sample: samples.Sample) -> None:
    """A button that opens a sample."""
    if st.button(plain(sample.title), key=f"sample-{sample.id}", help=plain(sample.says)):
        with said():
            show(session.take(samples.store(sample), sample.file))


title(
    "Open a checkpoint", "See what it is, why it does not load, where the model looks, and take away a repaired file."
)

stored = drop_zone()
if stored is not None:
    show(session.take(stored))

chips = samples.chips()
if chips:
    st.markdown("**Try one**")
    with st.container(horizontal=True, key="samples"):
        for sample in chips[:CHIPS]:
            offer(sample)
        with st.popover("More", icon=":material/more_horiz:"):
            for sample in chips[CHIPS:]:
                offer(sample)

if server_root() is not None:
    listing = list_files()
    box, go = st.columns([6, 1], vertical_alignment="bottom")
    choice = box.selectbox(
        "Or a file on this server", listing, index=None, placeholder=f"{len(listing)} files", key="server-path"
    )
    if go.button("Open it", disabled=choice is None, key="open-server-path", width="stretch") and choice:
        with said():
            show(session.take(store_path(choice)))

with st.expander("Or paste an error of loading or running a model", icon=":material/content_paste:"):
    pasting.paste_box("open")

recent = session.recent()
if recent:
    st.markdown("**Recent**")
for entry in recent:
    name, size, when, open_it, drop_it = st.columns([6, 2, 2, 1.4, 1.4], vertical_alignment="center")
    name.html(f"<b>{escaped(entry.hand.name)}</b>")
    size.caption(human_bytes(session.nbytes_of(entry.hand)))
    minutes = int((time.time() - entry.at) // 60)
    when.caption("just now" if minutes < 1 else f"{minutes} min ago")
    if open_it.button("Open", key=f"recent-{entry.hand.sha256}"):
        show(session.take(session.stored(entry.hand), entry.hand.name))
    if drop_it.button("Forget", key=f"forget-{entry.hand.sha256}", type="tertiary"):
        session.forget(entry.hand)
        st.rerun()
