"""The Weights page in a real browser: from a finding to its tensor, and what a link keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def test_from_a_finding_to_its_tensor_and_back_to_all(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Weights")
    page = visitor.page
    page.locator(".mi-answer").wait_for()
    assert re.search(r"1 error, \d+ warnings?", page.locator(".mi-answer").inner_text())
    page.get_by_role("button", name=re.compile("stage3.2.branch2.5.weight")).first.click()
    page.get_by_role("figure", name="Histogram of stage3.2.branch2.5.weight").wait_for()
    page.get_by_role("radio", name=re.compile("Rows")).or_(
        page.get_by_role("button", name=re.compile("Rows$"))
    ).first.click()
    page.get_by_role("figure", name="Rows by magnitude").wait_for()
    visitor.settle()
    assert "48 rows of 48" in visitor.text()
    visitor.check_calm()


def test_what_is_muted_stands_in_the_address(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Weights")
    page = visitor.page
    page.locator("[data-finding=large-weight]").first.wait_for()
    page.get_by_role("combobox", name=re.compile("Muted")).click()
    page.get_by_role("option", name=re.compile("very large values")).click()
    page.keyboard.press("Escape")
    visitor.settle()
    page.wait_for_url(re.compile("mute=large-weight"))
    page.wait_for_function("() => !document.querySelector('[data-finding=large-weight]')")
    assert page.locator("[data-finding=non-finite]").count() == 1
    page.reload()
    page.locator("[data-finding=non-finite]").first.wait_for()
    visitor.settle()
    assert page.locator("[data-finding=large-weight]").count() == 0
    visitor.check_calm()


def test_a_spectrum_is_computed_when_it_is_asked_for(visitor, samples: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Weights")
    page = visitor.page
    page.get_by_role("button", name="conv5.0.weight").first.click()
    page.get_by_role("figure", name="Histogram of conv5.0.weight").wait_for()
    visitor.settle()
    page.get_by_role("radio", name=re.compile("Spectrum")).or_(
        page.get_by_role("button", name=re.compile("Spectrum$"))
    ).first.click()
    page.get_by_role("button", name="Compute the spectrum").click()
    page.get_by_role("figure", name="Singular values of conv5.0.weight, largest first").wait_for()
    visitor.settle()
    # A quarter of its 1,024 outputs are zero, and 192 inputs are the shorter side.
    assert "1024x192" in visitor.text() and "stable rank" in visitor.text()
    visitor.check_calm()
