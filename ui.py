"""The pages and the frame around them: navigation, the checkpoint in hand. The server itself is app.py."""

from pathlib import Path

import streamlit as st

from inspector.errors import InspectorError, ReadError
from inspector.web import components, gone_link, guard, next_steps, remote_files, session, shelf, sidebar, states
from inspector.web import gc_freeze as garbage
from inspector.web.server_paths import audits_store
from inspector.web.text import visible

# A picture of our own: Streamlit fetches the symbol of an icon name from another host for the browser's tab.
ICON = Path(components.__file__).parent / "static" / "icon.png"
st.set_page_config(page_title="Model Inspector", page_icon=ICON, layout="wide")

PAGES = {
    "": [
        st.Page("pages/open.py", title="Open", icon=":material/upload_file:", url_path="open", default=True),
        st.Page("pages/files.py", title="Files", icon=":material/folder:", url_path="files"),
    ],
    "What is it": [
        st.Page("pages/overview.py", title="Overview", icon=":material/summarize:", url_path="overview"),
        st.Page("pages/contents.py", title="Contents", icon=":material/account_tree:", url_path="contents"),
    ],
    "Look inside": [
        st.Page("pages/tensors.py", title="Tensors", icon=":material/dataset:", url_path="tensors"),
        st.Page("pages/weights.py", title="Weights", icon=":material/bar_chart:", url_path="weights"),
        st.Page("pages/projector.py", title="Projector", icon=":material/scatter_plot:", url_path="projector"),
        st.Page("pages/architecture.py", title="Architecture", icon=":material/schema:", url_path="architecture"),
    ],
    "See it work": [
        st.Page("pages/explain.py", title="Explain", icon=":material/visibility:", url_path="explain"),
        st.Page("pages/evaluation.py", title="Evaluation", icon=":material/fact_check:", url_path="evaluation"),
    ],
    "Compare": [
        st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:", url_path="compare"),
        st.Page("pages/run.py", title="Run", icon=":material/timeline:", url_path="run"),
    ],
    "Fix": [
        st.Page("pages/repair.py", title="Repair", icon=":material/build:", url_path="repair"),
        st.Page("pages/convert.py", title="Convert", icon=":material/swap_horiz:", url_path="convert"),
    ],
}

if audits_store() is not None:
    PAGES["Compare"].append(st.Page("pages/zoo.py", title="Zoo", icon=":material/grid_view:", url_path="zoo"))

garbage.set_aside()
page = st.navigation(PAGES, expanded=True)
components.use_style()
with guard.said():
    session.follow_link()
    shelf.follow_link()
held = session.in_hand()
states.follow_link(held)
if held is not None:
    st.set_page_config(page_title=f"{visible(held.name)} · {page.title}")
sidebar.draw()
remote_files.draw_line()
of_files = page.url_path == "files" and (shelf.current() is not None or shelf.missing() is not None)
wanted = shelf.missing() if of_files else session.missing()
if page.url_path != "files":
    shelf.drop_missing()
try:
    # The page without a path is Open, which takes any file.
    if wanted is not None and of_files:
        gone_link.draw_archive(page.title, wanted)
    elif wanted is not None and page.url_path:
        gone_link.draw(page.title, wanted)
    else:
        page.run()
except ReadError as error:
    guard.show_error(error)
    next_steps.show_for_unreadable()
except InspectorError as error:
    guard.show_error(error)
finally:
    garbage.collect()
