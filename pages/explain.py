"""Explain: where does the model look?"""

from pathlib import Path

import streamlit as st

from inspector.cam.report import Explanation, Preprocessing
from inspector.errors import InspectorError
from inspector.render.colour_maps import COLOUR_MAPS
from inspector.render.json import as_json
from inspector.render.overlay import overlay, png_bytes
from inspector.units import human_shape, human_share
from inspector.web import explaining, reports
from inspector.web.components import Figure, figures, finding_cards, need_file, title
from inspector.web.guard import said, show_error
from inspector.web.text import plain


def choose_picture() -> explaining.Picture | None:
    """Sample pictures or one's own."""
    with st.container(border=True, key="picture-choice"):
        paths = explaining.sample_pictures()
        if paths:
            st.markdown("**Choose a picture**")
            with st.container(horizontal=True, key="pictures", gap="xsmall"):
                for path in paths:
                    with st.container(width=92, gap="xxsmall"):
                        st.image(str(path), width="stretch", alt=path.stem)
                        name = plain(path.stem.replace("_", " "))
                        if st.button(name, key=f"picture-{path.stem}", width="stretch"):
                            explaining.take_picture(path.name, path.read_bytes())
        upload = st.file_uploader(
            "Or one of your own", type=["png", "jpg", "jpeg", "webp", "bmp", "tiff"], key="own", max_upload_size=50
        )
        if upload is not None and st.session_state.get("own-id") != upload.file_id:
            st.session_state["own-id"] = upload.file_id
            with said():
                explaining.take_picture(Path(upload.name).name, upload.getvalue())
    return explaining.picture_in_hand()


def edit(start: Preprocessing, digest: str) -> Preprocessing:
    """Preprocessing as it is taken, open to change."""
    with st.expander(f"Preprocessing · {plain(start.source)}", icon=":material/tune:"):
        if start.assumed:
            st.caption("Nobody states it for this file: if the classes look wrong, change it here.")
        size, crop, kind = st.columns(3)
        shorter = start.resize[0] if isinstance(start.resize, tuple) else start.resize or 0
        resize = size.number_input("Shorter side (0: keep)", 0, 4096, shorter, key=f"resize-{digest}")
        cut = crop.number_input(
            "Centre crop (0: none)", 0, 4096, start.crop[0] if start.crop else 0, key=f"crop-{digest}"
        )
        choices = ("bilinear", "bicubic")
        interpolation = kind.selectbox(
            "Interpolation", choices, choices.index(start.interpolation), key=f"kind-{digest}"
        )
        left, right = st.columns(2)
        mean = left.text_input("Mean per channel", ", ".join(f"{m:g}" for m in start.mean), key=f"mean-{digest}")
        std = right.text_input("Deviation per channel", ", ".join(f"{s:g}" for s in start.std), key=f"std-{digest}")
        try:
            return explaining.edited(
                start, resize=int(resize), crop=int(cut), mean=mean or "", std=std or "", interpolation=interpolation
            )
        except InspectorError as error:
            show_error(error)
            return start


@st.fragment
def show(picture: explaining.Picture, explanation: Explanation) -> None:
    """The two pictures; colour and opacity redraw only them."""
    pixels = explaining.decoded(picture)
    colour, strength = st.columns(2)
    colour_map = colour.selectbox("Colours", COLOUR_MAPS, key="colour-map")
    opacity = strength.slider("Opacity", 0.0, 1.0, 0.5, 0.05, key="opacity")
    left, right = st.columns(2)
    seen = overlay(pixels, explanation, opacity=0.0, dim_outside=0.6)
    left.image(explaining.for_display(seen), caption="What the model saw", width="stretch", alt="The picture")
    over = overlay(pixels, explanation, colour_map=colour_map, opacity=opacity)
    label = explaining.class_label(explanation.target)
    right.image(
        explaining.for_display(over),
        caption=f"Where it looked for {plain(label)}",
        width="stretch",
        alt="Heat map overlay",
    )
    stem = Path(picture.name).stem
    with st.container(horizontal=True):
        for text, data, name in (
            ("Overlay (PNG)", lambda: png_bytes(over), f"{stem}-overlay.png"),
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
preprocessing = edit(explaining.inferred(hand), hand.sha256)
picture = choose_picture()
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
    key="layer",
)
layer_box.caption(plain(by_path[layer].reason))
answer = explaining.explained(hand, picture, preprocessing, layer=layer, target=None, method="grad-cam")
labels = {score.index: f"{explaining.class_label(score)} · {human_share(score.probability)}" for score in answer.scores}
target = class_box.selectbox("Class", list(labels), format_func=lambda i: labels[i], key=f"class-{picture.sha256[:12]}")
explanation = explaining.explained(hand, picture, preprocessing, layer=layer, target=target, method="grad-cam")

show(picture, explanation)
finding_cards(explanation.findings)
scores, facts = st.columns(2)
with scores:
    st.subheader("Answer")
    st.html(explaining.score_bars(explanation.scores))
with facts:
    st.subheader("Raw map")
    figures(
        [
            Figure(label="lowest", says=f"{explanation.raw_minimum:.3g}", exact=repr(explanation.raw_minimum)),
            Figure(label="highest", says=f"{explanation.raw_maximum:.3g}", exact=repr(explanation.raw_maximum)),
            Figure(label="negative", says=human_share(explanation.negative_share)),
            Figure(label="cells", says=human_shape(explanation.raw.shape)),
        ]
    )
