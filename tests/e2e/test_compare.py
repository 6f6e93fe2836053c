"""The Compare page in a real browser: a second file dropped, a tensor's two histograms, a link that restores both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def test_two_files_a_tensor_and_the_link(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes.pth")
    visitor.visit("Compare")
    page = visitor.page
    page.get_by_test_id("inspector-file").set_input_files(samples / "shapes_sick.pth")
    page.locator("p.mi-answer").wait_for()
    assert "Only 4 layers changed" in page.locator("p.mi-answer").inner_text()
    page.wait_for_url(re.compile("with=[0-9a-f]{64}"))
    visitor.settle()
    page.get_by_test_id("stDataFrame").locator("canvas").first.click(position={"x": 16, "y": 55}, force=True)
    page.get_by_role("figure", name=re.compile("Histograms of .* in both files")).wait_for()
    drawing = page.locator(".drawing")
    drawing.locator(".legend").get_by_text("Relative L2").wait_for()
    for side in ("first", "second"):
        page.get_by_role("figure", name=f"Layers by values heat strip of the {side} file").wait_for()
    page.reload()
    page.locator("p.mi-answer").wait_for()
    visitor.settle()
    assert "Only 4 layers changed" in page.locator("p.mi-answer").inner_text()
    visitor.check_calm()
