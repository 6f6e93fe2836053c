"""The server: `streamlit run app.py`. The pages start in ui.py; here are only the routes beside them."""

import streamlit as st

from inspector.web.guard import on_script_error
from inspector.web.uploads import routes

app = st.App("ui.py", routes=routes(), on_script_error=on_script_error)
