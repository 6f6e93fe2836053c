"""The page of drawing_app.py."""

import streamlit as st

from inspector.graph.types import Box
from inspector.web.components import title, use_style
from inspector.web.drawing import show_drawing
from tests.e2e.drawings import NETWORKS, costs

st.set_page_config(page_title="Drawing", layout="wide")
use_style()
name = st.query_params.get("net", "residual")
title("Drawing", f"What does {name} look like?")


@st.cache_resource
def built(name: str) -> tuple[Box, dict[str, dict[str, float]]]:
    box = NETWORKS[name]()
    return box, costs(box)


def choose(box: Box) -> None:
    st.session_state.chosen = box.path
    st.session_state.kind = box.kind


box, columns = built(name)
st.session_state.setdefault("chosen", st.query_params.get("chosen", ""))
show_drawing(
    box,
    key="drawing",
    columns=columns,
    chosen=st.session_state.chosen,
    on_choice=choose,
    says="" if box.edges else "No arrows: names and shapes do not tell what feeds what.",
)
st.text(f"Chosen: {st.session_state.chosen or 'nothing'} {st.session_state.get('kind', '')}")
