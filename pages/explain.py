"""Explain: where does the model look?"""

from pathlib import Path

import streamlit as st

from inspector.cam.report import Explanation
from inspector.render.colour_maps import COLOUR_MAPS
from inspector.render.json import as_json
from inspector.render.overlay import overlay, png_bytes
from inspector.units import human_shape, human_share
from inspector.web import explaining, reports
from inspector.web.components import Figure, figures, finding_cards, need_file, title
from inspector.web.guard import said
from inspector.web.text import plain


def choose_picture() -> explaining.Picture | None:
    """Sample pictures or one's own."""
    in_hand = explaining.picture_in_hand()
    with st.container(border=True, key="picture-choice"):
        paths = explaining.sample_pictures()
        if paths:
            st.markdown("**Choose a picture**")
            with st.container(horizontal=True, key="pictures", gap="xsmall"):
                for path in paths:
                    with st.container(width=92, gap="xxsmall"):
                        st.image(str(path), width="stretch", alt=path.stem)
                        name = plain(path.stem.replace("_", " "))
                        chosen = in_hand is not None and in_hand.name == path.name
                        st.button(
                            name,
                            key=f"picture-{path.stem}",
                            width="stretch",
                            type="primary" if chosen else "secondary",
                            on_click=explaining.take_sample,
                            args=(path,),
                        )
        upload = st.file_uploader(
            "Or one of your own", type=["png", "jpg", "jpeg", "webp", "bmp", "tiff"], key="own", max_upload_size=50
        )
        if upload is not None and st.session_state.get("own-id") != upload.file_id:
            st.session_state["own-id"] = upload.file_id
            with said():
                explaining.take_picture(Path(upload.name).name, upload.getvalue())
    return explaining.picture_in_hand()


@st.fragment
def show(picture: explaining.Picture, explanation: Explanation) -> None:
    """Picture, heat and answer side by side; colour and opacity redraw only them."""
    small, scaled = explaining.for_display(picture, explanation)
    left, right, answer = st.columns([3, 3, 2])
    colour, strength, _ = st.columns([3, 3, 2])
    colour_map = colour.selectbox("Colours", COLOUR_MAPS, key="colour-map")
    opacity = strength.slider("Opacity", 0.0, 1.0, 0.5, 0.05, key="opacity")
    seen = overlay(small, scaled, opacity=0.0, dim_outside=0.6)
    left.image(seen, caption="What the model saw", width="stretch", alt="The picture")
    over = overlay(small, scaled, colour_map=colour_map, opacity=opacity)
    label = explaining.class_label(explanation.target)
    right.image(over, caption=f"Where it looked for {plain(label)}", width="stretch", alt="Heat map overlay")
    answer.markdown("**Answer**")
    answer.html(explaining.score_bars(explanation.scores))

    def whole() -> bytes:
        pixels = explaining.decoded(picture)
        return png_bytes(overlay(pixels, explanation, colour_map=colour_map, opacity=opacity))

    stem = Path(picture.name).stem
    with st.container(horizontal=True):
        for text, data, name in (
            ("Overlay (PNG)", whole, f"{stem}-overlay.png"),
            ("Maps (NPZ)", lambda: explaining.maps_npz(explanation), f"{stem}-maps.npz"),
            ("Manifest (JSON)", lambda: as_json(explanation), f"{stem}-explanation.json"),
        ):
            st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)


title("Explain", "Where does the model look?")
hand = need_file(
    "A heat map over your picture: which parts of it speak for the class the model answers.",
    "clean",
    "legacy-dataparallel",
)
reports.model_of(hand)  # says at once, in one sentence, when there is no model to run
picture = choose_picture()
preprocessing = explaining.edit(explaining.inferred(hand), hand.sha256)
if picture is None:
    st.caption("The heat map appears here once a picture is chosen.")
    st.stop()

proposals = explaining.layers(hand.sha256, hand.name, explaining.input_shape(preprocessing))
by_path = {proposal.path: proposal for proposal in proposals}
layer_box, class_box = st.columns(2)
layer = layer_box.selectbox(
    "Layer",
    list(by_path),
    format_func=lambda p: (
        f"{p} · {by_path[p].grid[0]}x{by_path[p].grid[1]}" + (" · suggested" if by_path[p].rank == 1 else "")
    ),
    key=f"layer-{hand.sha256[:12]}",
)
layer_box.caption(plain(by_path[layer].reason))
# The answer does not depend on the layer, and its own class is explained with it: one run of the model for both.
first = explaining.explained(hand, picture, preprocessing, layer=proposals[0].path, target=None, method="grad-cam")
with class_box:
    chosen = explaining.choose_class(first.scores, f"class-{hand.sha256[:12]}-{picture.sha256[:12]}")
target = None if chosen == first.target.index else chosen
explanation = explaining.explained(hand, picture, preprocessing, layer=layer, target=target, method="grad-cam")

assumed = explaining.unknowns(preprocessing, explanation)
if assumed:
    st.info(plain(assumed), icon=":material/info:")
show(picture, explanation)
finding_cards(explanation.findings)
figures(
    [
        Figure(
            label="lowest of the raw map", says=f"{explanation.raw_minimum:.3g}", exact=repr(explanation.raw_minimum)
        ),
        Figure(label="highest of it", says=f"{explanation.raw_maximum:.3g}", exact=repr(explanation.raw_maximum)),
        Figure(label="negative", says=human_share(explanation.negative_share)),
        Figure(label="cells", says=human_shape(explanation.raw.shape)),
    ]
)
