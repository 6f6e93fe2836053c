"""Taken along, in a real browser: the address of a view, a figure as SVG and PNG, the report without network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def test_a_link_a_figure_and_a_report(visitor, samples: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    visitor.upload(samples / "shapes_sick.pth")
    page = visitor.page
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("window.copied") == page.url and "file=" in page.url

    page.locator(".st-key-treemap .js-plotly-plot").wait_for()
    for kind, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Save as {kind}: Treemap of bytes by module").click()
        assert saved.value.suggested_filename == f"treemap.{kind.lower()}"
        assert Path(saved.value.path()).read_bytes().startswith(begins)

    page.get_by_role("button", name="Report", exact=True).click()
    handed = page.get_by_test_id("stDialog").get_by_role("button", name="Download shapes_sick-report.html")
    handed.wait_for()
    assert "6 findings, 338 tensors with their numbers" in page.get_by_test_id("stDialog").inner_text()
    with page.expect_download() as saved:
        handed.click()
    page.keyboard.press("Escape")
    saved.value.save_as(tmp_path / "report.html")
    context = page.context.browser.new_context(offline=True, java_script_enabled=False)
    try:
        alone = context.new_page()
        said: list[str] = []
        asked: list[str] = []
        alone.on("console", lambda message: said.append(message.text))
        alone.on("request", lambda request: asked.append(request.url))
        alone.goto((tmp_path / "report.html").as_uri())
        assert alone.locator("h1").inner_text() == "shapes_sick.pth"
        assert re.search(r"holds 5 NaN .* among 2,304", alone.locator(".finding.error").first.inner_text())
        assert alone.locator("svg").count() == 3
        assert said == [] and [url for url in asked if not url.startswith(("file:", "data:"))] == []
    finally:
        context.close()
    visitor.check_calm()
