"""The Projector page in a real browser: points are chosen on the map, and the address brings it back."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

POINTS = ".scatterlayer path.point"


def test_points_are_chosen_on_the_map(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Projector")
    page = visitor.page
    page.locator(".mi-answer").wait_for()
    # Under the app's own policy: what compiles code in the browser would draw nothing.
    page.locator(POINTS).first.wait_for()
    assert page.locator(POINTS).count() == 1024 and page.locator(".no-webgl").count() == 0
    assert "1,024 filters of conv5.0.weight" in page.locator(".mi-answer").inner_text()
    page.get_by_role("combobox", name=re.compile("Tensor")).click()
    page.get_by_role("option", name="fc.weight").click()
    page.wait_for_function(f"() => document.querySelectorAll('{POINTS}').length === 4")
    visitor.settle()
    page.wait_for_url(re.compile("tensor=fc.weight"))
    # One point: its neighbours, by the names that the file states.
    spot = page.locator(POINTS).first.bounding_box()
    page.mouse.move(spot["x"] + spot["width"] / 2, spot["y"] + spot["height"] / 2)
    page.locator(".hovertext").first.wait_for()
    page.mouse.click(spot["x"] + spot["width"] / 2, spot["y"] + spot["height"] / 2)
    page.get_by_text("Nearest to circle").wait_for()
    visitor.settle()
    visitor.check_calm()


def test_a_box_around_points_gives_a_table_to_take_along(visitor, samples: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Projector")
    page = visitor.page
    page.locator(POINTS).first.wait_for()
    visitor.settle()
    assert "256 filters dead" in page.locator(".mi-answer").inner_text()
    page.locator('[data-title="Box Select"]').first.click()
    map_ = page.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(map_["x"] + 5, map_["y"] + 5)
    page.mouse.down()
    page.mouse.move(map_["x"] + map_["width"] - 5, map_["y"] + map_["height"] - 5, steps=5)
    page.mouse.up()
    page.get_by_text("1,024 filters chosen").wait_for()
    visitor.settle()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Table as CSV").first.click()
    waiting.value.save_as(tmp_path / "points.csv")
    lines = list(csv.DictReader((tmp_path / "points.csv").open()))
    assert len(lines) == 1024 and sum(line["dead"] == "1" for line in lines) == 256
    visitor.check_calm()


def test_the_address_brings_the_map_back(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.safetensors")
    digest = visitor.page.url.partition("?")[2]
    visitor.open(f"/projector?{digest}&tensor=fc.weight&along=columns&colour=standing+apart&find=17")
    page = visitor.page
    page.get_by_text("Nearest to column 17").wait_for()
    visitor.settle()
    assert "1,024 columns of fc.weight" in page.locator(".mi-answer").inner_text()
    # The box itself comes with a script of its own, after what it decides.
    expect(page.get_by_role("textbox", name="Find")).to_have_value("17")
    assert "colour=standing" in page.url
    expect(page.locator(".legendtext").first).to_contain_text("(1,024)")
    page.get_by_text("Pictures at a layer").click()
    page.get_by_text(re.compile("8 pictures at fc")).wait_for()
    page.wait_for_url(re.compile("map-of=Pictures"))
    page.locator(".imagelayer image").first.wait_for()
    assert page.locator(".imagelayer image").count() == 8
    visitor.check_calm()
