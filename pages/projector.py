"""Projector: which rows of a tensor, or which pictures at a layer, lie together?"""

import streamlit as st

from inspector.web import projector, projector_pictures, reports, states
from inspector.web.components import need_file, title

ROWS, PICTURES = "Rows of a tensor", "Pictures at a layer"

title("Projector", "What lies together, what stands apart, what was never trained?")
hand = need_file(
    "The rows of any tensor as a map, a point each: filters, classes, tokens; or your own pictures, by what a layer "
    "makes of them.",
    "clean",
    "sick",
    "transformer",
)
checkpoint = reports.checkpoint_of(hand)
chosen = st.segmented_control(
    "Map of", (ROWS, PICTURES), default=ROWS, required=True, key="map-of", bind="query-params",
    label_visibility="collapsed",
)  # fmt: skip
if chosen == PICTURES:
    projector_pictures.show_pictures(hand)
else:
    projector.show_rows(hand, checkpoint, states.choose_state(checkpoint))
