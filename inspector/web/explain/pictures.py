"""The picture in hand, from the samples or the visitor; a worker decodes it, at the size of a screen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import streamlit as st
from PIL import Image

from inspector.cam.report import Explanation
from inspector.errors import ReadError
from inspector.installed import sample_sources, samples_folder
from inspector.jobs.job import Job
from inspector.jobs.subjects import Drawn, PictureRef
from inspector.render.screen import LONGEST, at_screen_size, scaled_to
from inspector.web import jobs
from inspector.web.guard import said
from inspector.web.session import owner
from inspector.web.store import clean_name, is_digest, the_store
from inspector.web.text import plain

TYPES = ["png", "jpg", "jpeg", "webp", "bmp", "tiff"]
MEGABYTES = 50
_PICTURE = "picture"
# Whether the choice is unfolded, once there is a picture.
CHANGING = "change-picture"


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture in hand. data: the file's bytes as they came."""

    name: str
    data: bytes

    @cached_property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def ref(self) -> PictureRef:
        """As jobs know it: it lies in the store from now on. Raises as `ContentStore.put_bytes`."""
        store = the_store()
        path = store.get_path(self.sha256)
        if path is None:
            store.put_bytes(self.data, name=self.name, owner=owner())
            path = store.get_path(self.sha256)
        if path is None:
            raise ReadError(f"{self.name} could not be kept.", hint="Choose it again.")
        return PictureRef(sha256=self.sha256, name=self.name, path=path)


def sample_pictures() -> list[Path]:
    """The pictures that come with the samples."""
    return sorted((samples_folder() / "pictures").glob("*.png"))


def photographs() -> list[Path]:
    """For networks that were trained on photographs; committed, with their licences beside them."""
    sources = sample_sources()
    return sorted((sources / "photographs").glob("*.jpg")) if sources is not None else []


def _offered() -> list[Path]:
    return [*sample_pictures(), *photographs()]


def take_sample(path: Path) -> None:
    """One of the pictures that come with the samples, when its button is clicked."""
    st.session_state[_PICTURE] = Picture(name=path.name, data=path.read_bytes())
    st.session_state[CHANGING] = False


def sample_id(picture: Picture) -> str:
    """By which an address knows one of the offered pictures; "" for one's own, whatever it is called."""
    names = (path for path in _offered() if path.name == picture.name)
    return next((path.stem for path in names if path.read_bytes() == picture.data), "")


def take_named(text: str, name: str) -> None:
    """The picture of an address: an offered one by its id, or one that the store has by its digest. name: what it was
    called. Raises ReadError where it is not here any more, ExplainError for what is no picture."""
    sample = next((path for path in _offered() if path.stem == text), None)
    if sample is not None:
        take_sample(sample)
        return
    stored = the_store().find(text) if is_digest(text) else None
    path = the_store().get_path(text) if stored is not None else None
    if stored is None or path is None or stored.nbytes > MEGABYTES * 1_000_000:
        raise ReadError("The picture of this link is not on the server any more.", hint="Choose it again.")
    name = clean_name(name or "picture")
    ref = PictureRef(sha256=text, name=name, path=path)
    jobs.ask(Job(kind="drawn", arguments=(ref,)), says="Reading the picture")  # what is no picture is not read here
    st.session_state[_PICTURE] = Picture(name=name, data=path.read_bytes())
    if owner() not in stored.names:
        the_store().claim(text, name=name, owner=owner())


def picture_in_hand() -> Picture | None:
    """The picture this session looks at; it stays when the page changes."""
    held = st.session_state.get(_PICTURE)
    return held if isinstance(held, Picture) else None


def take_picture(name: str, data: bytes) -> Picture:
    """Take it in hand after it was read once. Raises ExplainError for what is no picture."""
    picture = Picture(name=name, data=data)
    drawn(picture)
    st.session_state[_PICTURE] = picture
    return picture


def drawn(picture: Picture) -> Drawn:
    """Its pixels at the size of a screen, and how large it is. Raises ExplainError for what is no picture."""
    found: Drawn = jobs.ask(Job(kind="drawn", arguments=(picture.ref,)), says="Reading the picture")
    return found


def for_display(picture: Picture, made: Explanation, longest: int = LONGEST) -> tuple[Image.Image, Explanation]:
    """Picture and map no larger than a screen, so that a move of the slider costs milliseconds.

    Downloads keep every pixel: they are made from the originals.
    """
    small = at_screen_size(Image.fromarray(drawn(picture).pixels), longest)
    return small, scaled_to(small.size, made)


def choose_picture() -> Picture | None:
    """The choice, framed; which picture is in hand now."""
    with st.container(border=True, key="picture-choice"):
        return offer_pictures()


def offer_pictures() -> Picture | None:
    """Sample pictures, photographs, or one's own; which of them is in hand now."""
    samples = st.container()
    upload = st.file_uploader("Or one of your own", type=TYPES, key="own", max_upload_size=MEGABYTES)
    if upload is not None and st.session_state.get("own-id") != upload.file_id:
        before = picture_in_hand()
        with said():
            take_picture(Path(upload.name).name, upload.getvalue())
        st.session_state["own-id"] = upload.file_id
        if before is not None and picture_in_hand() is before:
            st.caption(plain(f"What is below is still of {before.name}."))
    # Drawn last, in their place above: which of them is in hand is known only now.
    in_hand = picture_in_hand()
    with samples:
        paths = _offered()
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
