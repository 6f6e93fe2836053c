"""The picture in hand: taken from the samples or from the visitor, decoded once, at the size of a screen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from PIL import Image

from inspector.cam.report import Explanation
from inspector.installed import samples_folder
from inspector.web.guard import said
from inspector.web.text import plain

TYPES = ["png", "jpg", "jpeg", "webp", "bmp", "tiff"]
MEGABYTES = 50
_PICTURE = "picture"
_SHOWN_SIDE = 1400


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in hand. data: the file's bytes as they came."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()


def sample_pictures() -> list[Path]:
    """The pictures that come with the samples."""
    return sorted((samples_folder() / "pictures").glob("*.png"))


def take_sample(path: Path) -> None:
    """One of the pictures that come with the samples, when its button is clicked."""
    take_picture(path.name, path.read_bytes())


def picture_in_hand() -> Picture | None:
    """The picture this session looks at; it stays when the page changes."""
    held = st.session_state.get(_PICTURE)
    return held if isinstance(held, Picture) else None


def take_picture(name: str, data: bytes) -> Picture:
    """Take it in hand after reading it once. Raises ExplainError for what is no picture."""
    from inspector.cam.inputs.picture import open_picture

    open_picture(data)
    picture = Picture(name=name, data=data)
    st.session_state[_PICTURE] = picture
    return picture


# A picture of 100 megapixels, the most that is taken, is 300 MB here.
@st.cache_resource(max_entries=3, show_spinner=False)
def _decoded(sha256: str, _data: bytes) -> Image.Image:
    from inspector.cam.inputs.picture import open_picture

    return open_picture(_data)


def decoded(picture: Picture) -> Image.Image:
    """Its pixels."""
    return _decoded(picture.sha256, picture.data)


@st.cache_resource(max_entries=32, show_spinner=False)
def _shown(sha256: str, _data: bytes, longest: int) -> Image.Image:
    from inspector.cam.inputs.picture import upright

    picture = upright(_decoded(sha256, _data))
    largest = max(picture.size)
    if largest <= longest:
        return picture
    width, height = (max(1, round(side * longest / largest)) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)


def for_display(
    picture: Picture, explanation: Explanation, longest: int = _SHOWN_SIDE
) -> tuple[Image.Image, Explanation]:
    """Picture and explanation no larger than a screen, so that a move of the slider costs milliseconds.

    Downloads keep every pixel: they are made from the originals.
    """
    small = _shown(picture.sha256, picture.data, longest)
    crop = explanation.crop
    across, down = small.width / crop.picture_width, small.height / crop.picture_height
    scaled = replace(
        crop,
        left=crop.left * across,
        top=crop.top * down,
        width=crop.width * across,
        height=crop.height * down,
        picture_width=small.width,
        picture_height=small.height,
    )
    place = explanation.place
    if place is not None:
        place = (place[0] * across, place[1] * down, place[2] * across, place[3] * down)
    return small, replace(explanation, crop=scaled, place=place)


def choose_picture() -> Picture | None:
    """Sample pictures or one's own."""
    with st.container(border=True, key="picture-choice"):
        samples = st.container()
        upload = st.file_uploader("Or one of your own", type=TYPES, key="own", max_upload_size=MEGABYTES)
        if upload is not None and st.session_state.get("own-id") != upload.file_id:
            st.session_state["own-id"] = upload.file_id
            with said():
                take_picture(Path(upload.name).name, upload.getvalue())
    # Drawn last, in their place above: which of them is in hand is known only now.
    in_hand = picture_in_hand()
    with samples:
        paths = sample_pictures()
        if paths:
            st.markdown("**Choose a picture**")
            with st.container(horizontal=True, key="pictures", gap="xsmall"):
                for path in paths:
                    with st.container(width=92, gap="xxsmall"):
                        st.image(str(path), width="stretch", alt=path.stem)
                        chosen = in_hand is not None and in_hand.data == path.read_bytes()
                        st.button(
                            plain(path.stem.replace("_", " ")),
                            key=f"picture-{path.stem}",
                            width="stretch",
                            type="primary" if chosen else "secondary",
                            on_click=take_sample,
                            args=(path,),
                        )
    return in_hand
