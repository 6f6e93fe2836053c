"""One step back is the page before, however much was chosen on the page that is left."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser


def _choose(visitor: Any, box: str, option: str) -> None:
    # Of a long list only what is in sight is there: typed, it is.
    visitor.page.get_by_role("combobox", name=re.compile(box)).first.fill(option)
    visitor.page.get_by_role("option", name=re.compile(re.escape(option))).first.click()
    visitor.settle()


def _steps(visitor: Any) -> int:
    return int(visitor.page.evaluate("() => history.length"))


def _back(visitor: Any, to: str, heading: str) -> None:
    """By one press; to: what the address is then, a pattern."""
    visitor.page.go_back()
    visitor.page.wait_for_url(re.compile(to))
    visitor.page.locator(".mi-title h1").filter(has_text=re.compile(heading)).wait_for()
    visitor.settle()


def test_each_page_is_one_step_whatever_is_chosen_on_it(visitor: Any) -> None:
    page = visitor.page
    visitor.open("/")
    first = _steps(visitor)
    page.get_by_role("button", name="DataParallel checkpoint").first.click()
    page.wait_for_url(re.compile("overview.*file="))
    page.get_by_text("What is this file?").wait_for()
    visitor.settle()
    assert _steps(visitor) == first + 1

    visitor.visit("Weights")
    for tensor in ("conv1.0.weight", "fc.weight"):
        _choose(visitor, "Look at a tensor", tensor)
        page.wait_for_url(re.compile(f"tensor=[^&]*{re.escape(tensor)}"))
    assert _steps(visitor) == first + 2

    visitor.visit("Explain")
    page.get_by_role("button", name="square 2").click()
    page.get_by_alt_text("Heat map overlay").wait_for()
    visitor.settle()
    _choose(visitor, "^Class", "circle")
    _choose(visitor, "^Layer", "stage2")
    page.get_by_role("radio", name="For and against").click()
    page.wait_for_url(re.compile("view=For"))
    assert "class=0" in page.url and "layer=stage2" in page.url
    assert _steps(visitor) == first + 3

    _back(visitor, r"/weights\?", "^Weights$")
    assert re.search("tensor=[^&]*fc.weight", page.url)
    _back(visitor, r"/overview\?", "shapes_dp")
    _back(visitor, r"/(\?.*)?$", "^Open a checkpoint$")
    # And forward again, as many presses.
    page.go_forward()
    page.wait_for_url(re.compile(r"/overview\?"))
    page.go_forward()
    page.wait_for_url(re.compile(r"/weights\?.*tensor="))
    page.locator(".mi-title h1").filter(has_text=re.compile("^Weights$")).wait_for()
    visitor.settle()
    assert _steps(visitor) == first + 3
    visitor.check_calm()
