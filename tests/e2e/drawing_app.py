"""The drawing alone, with the app's own routes and gate: `streamlit run tests/e2e/drawing_app.py`, then ?net=dense."""

import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from inspector.web.front.gate import Gate  # noqa: E402
from inspector.web.front.rules import own_rules  # noqa: E402
from inspector.web.uploads import routes  # noqa: E402

app = st.App("drawing_page.py", routes=routes(), middleware=[Middleware(Gate, rules=own_rules())])
