"""Explain in a real browser: a picture, the maps of one pass to choose from, a second class, a file to take home."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspector.cam.report import Crop
from inspector.render.overlay import crop_pixels, resample

pytestmark = pytest.mark.browser


def _fetch(visitor, name: str) -> Path:  # type: ignore[no-untyped-def]
    """One of the files behind Download."""
    page = visitor.page
    page.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).click()
    page.keyboard.press("Escape")
    return Path(waiting.value.path())


def test_a_picture_is_explained_and_switched_between(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Explain")
    visitor.settle()
    page = visitor.page
    page.get_by_role("button", name="square 2").click()
    page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.settle()
    assert "Where it looked for square" in visitor.text()
    # The answer stands first: the whole map and its controls, in a window of usual height.
    page.set_viewport_size({"width": 1280, "height": 900})
    box = page.get_by_alt_text("Heat map overlay").bounding_box()
    assert box["y"] + box["height"] < 900
    for name in ("Method", "Layer"):
        assert page.get_by_role("combobox", name=name).first.bounding_box()["y"] < 900
    assert page.locator(".st-key-settled").bounding_box()["height"] < 40  # one line

    # Cold places are the picture's own pixels, in the file that is taken home.
    drawn = np.asarray(Image.open(_fetch(visitor, "Overlay (PNG)")))
    with np.load(_fetch(visitor, "Maps (NPZ)")) as arrays:
        heat = next(arrays[name] for name in arrays.files if name.endswith("heat"))
    picture = np.asarray(Image.open(samples.parent / "pictures" / "square_2.png").convert("RGB"))
    crop = Crop(left=64.0, top=0.0, width=256.0, height=256.0, picture_width=384, picture_height=256)
    rows, columns = crop_pixels(crop)
    heat = resample(heat, columns, crop.left, crop.width, axis=1)
    heat = resample(heat, rows, crop.top, crop.height, axis=0)
    same = (drawn == picture).all(axis=2)[rows.start : rows.stop, columns.start : columns.stop]
    assert (heat == 0).sum() > 100
    assert same[heat == 0].all()
    assert not same[heat > 0.5].any()

    # A cell of the table becomes the large map, and both choices follow it; nothing moves under the pointer.
    cell = page.get_by_role("button", name="HiResCAM at stage3")
    cell.scroll_into_view_if_needed()
    before = cell.bounding_box()
    cell.click()
    page.get_by_role("button", name="HiResCAM at stage3", pressed=True).wait_for()
    visitor.settle()
    assert cell.bounding_box() == before
    # The keyboard goes on from there.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="LayerCAM at stage3", pressed=True).wait_for()
    visitor.settle()
    assert "12x12" in page.locator(".mi-figures").inner_text()
    made = json.loads(_fetch(visitor, "Manifest (JSON)").read_text())
    (entry,) = made["entries"]
    assert (entry["method"], entry["layer"]["path"], entry["target"]["name"]) == ("layer-cam", "stage3", "square")
    assert "--method layer-cam --layer stage3:0" in made["command"]
    assert "--blend heat" in made["command"]

    # The address finds the same map again, in another visit.
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="For and against").click()
    page.wait_for_url(re.compile("view=For"))
    link = page.url
    assert "method=layer-cam" in link and "layer=stage3" in link and "picture=square_2" in link
    # One step back is the page before, however much was chosen; coming back finds all of it.
    page.go_back()
    page.wait_for_url(re.compile("overview"))
    visitor.settle()
    visitor.visit("Explain")
    page.get_by_role("button", name="LayerCAM at stage3", pressed=True).wait_for()
    assert page.get_by_role("radio", name="For and against").is_checked()
    page.goto("about:blank")
    page.goto(link)
    page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.settle()
    assert "12x12" in page.locator(".mi-figures").inner_text()
    assert "Where it looked for square" in visitor.text()
    assert page.get_by_role("radio", name="For and against").is_checked()

    # A telephone's width: the map comes first, and nothing has to be scrolled sideways.
    page.set_viewport_size({"width": 420, "height": 900})
    visitor.settle()
    box = page.get_by_alt_text("Heat map overlay").bounding_box()
    assert box["y"] + box["height"] < 900
    assert page.evaluate("(() => { const m = document.querySelector('[data-testid=stMain]');"
                         " return m.scrollWidth - m.clientWidth })()") <= 0  # fmt: skip

    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="Drag to reveal").click()
    slider = page.get_by_role("slider", name="How much of the heat map is shown")
    slider.wait_for()
    slider.fill("20")
    over = page.get_by_alt_text("Heat map overlay")
    assert "80%" in over.evaluate("e => e.style.clipPath")
    visitor.check_calm()
