"""Explain in a real browser: a picture, the maps of one pass to choose from, a second class, a file to take home."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def test_a_picture_is_explained_and_switched_between(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Explain")
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

    # A cell of the table becomes the large map, and both choices follow it.
    cell = page.get_by_role("button", name="LayerCAM at stage3")
    cell.click()
    page.get_by_role("button", name="LayerCAM at stage3", pressed=True).wait_for()
    visitor.settle()
    assert "12x12" in page.locator(".mi-figures").inner_text()
    page.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Manifest (JSON)").click()
    made = json.loads(Path(waiting.value.path()).read_text())
    (entry,) = made["entries"]
    assert (entry["method"], entry["layer"]["path"], entry["target"]["name"]) == ("layer-cam", "stage3", "square")
    assert "--method layer-cam --layer stage3:0" in made["command"]
    page.keyboard.press("Escape")

    # The address finds the same map again, in another visit.
    assert "method=layer-cam" in page.url and "layer=stage3" in page.url
    page.goto(page.url)
    page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.settle()
    assert "12x12" in page.locator(".mi-figures").inner_text()
    assert "Where it looked for square" in visitor.text()

    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="Drag to reveal").click()
    slider = page.get_by_role("slider", name="How much of the heat map is shown")
    slider.wait_for()
    slider.fill("20")
    over = page.get_by_alt_text("Heat map overlay")
    assert "80%" in over.evaluate("e => e.style.clipPath")
    visitor.check_calm()
