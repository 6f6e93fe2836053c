"""The server: `streamlit run app.py`. The pages start in ui.py; here are only the routes beside them."""

import os
import sys

import streamlit as st
from starlette.middleware import Middleware
from streamlit import net_util
from streamlit.runtime.pages_manager import PagesManager

from inspector.errors import UsageError
from inspector.jobs.walls import keep_little
from inspector.openmp import share_processors
from inspector.web.downloads import AsStored
from inspector.web.front.gate import Gate
from inspector.web.front.index_page import IndexPage
from inspector.web.front.request_log import RequestLog, lines_for
from inspector.web.front.rules import own_house, own_rules
from inspector.web.front.start import started
from inspector.web.front.turnstile import Turnstile
from inspector.web.front.variables import LOG
from inspector.web.guard import on_script_error
from inspector.web.store_lock import hold_store
from inspector.web.uploads import routes

# Until st.navigation has run once, Streamlit takes a folder called pages/ for its older kind of multipage app, and
# would run a page without ui.py for the first visitor who follows a link to it.
PagesManager.uses_pages_directory = False
# For a page by a name that it does not know, Streamlit would ask a server elsewhere for this machine's address.
net_util.get_external_ip = lambda: None

share_processors()
keep_little()
try:
    hold_store()
    rules, house, mounted = own_rules(), own_house(), routes()
except UsageError as error:
    sys.exit(str(error))

app = st.App(
    "ui.py",
    routes=mounted,
    lifespan=started,
    middleware=[
        Middleware(RequestLog, pages=rules.pages, base=rules.base, lines=lines_for(os.environ.get(LOG.name, ""))),
        Middleware(Gate, rules=rules),
        Middleware(Turnstile, house=house),
        Middleware(AsStored),
        Middleware(IndexPage, pages=frozenset(rules.pages), base=rules.base),
    ],
    on_script_error=on_script_error,
)
