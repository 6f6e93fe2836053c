"""A run in a real browser: checkpoints dropped at once, their order, the strip, one scale, a file to take home."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.sample_run import save_run

pytestmark = pytest.mark.browser


def test_one_picture_goes_through_the_checkpoints_of_a_run(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    first, second, third = save_run(tmp_path, (0.0, 0.5, 1.0))
    broken = tmp_path / "notes.pth"
    broken.write_text("This is no checkpoint.")
    visitor.upload(third)
    visitor.visit("Explain")
    page = visitor.page
    page.get_by_role("button", name="star 1").click()
    page.get_by_alt_text("Heat map overlay").wait_for()
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="A run").click()
    page.get_by_test_id("inspector-file").set_input_files([second, broken, first])
    start = page.get_by_role("button", name=re.compile(r"Make the strip · 3 checkpoints, about .+ s$"))
    start.wait_for()
    visitor.settle()
    rows = page.locator('[data-table="run"] tbody tr')
    assert [rows.nth(at).inner_text().split()[1] for at in range(3)] == [first.name, second.name, third.name]
    assert "notes.pth is left out." in visitor.text()

    # The zone is free for more files.
    assert page.get_by_text("Drop checkpoints, or the folder they lie in").is_visible()
    start.click()
    page.get_by_alt_text("Heat map 3 of 3: epoch_3.pth, star").wait_for()
    visitor.settle()
    widths = page.locator(".mi-strip img").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(widths) == 3 and all(width > 100 for width in widths)
    before = page.locator(".mi-strip img").first.get_attribute("src")
    page.get_by_test_id("stButtonGroup").get_by_role("radio", name="one scale for all").click()
    page.locator(".mi-strip").get_by_text("one scale for all").first.wait_for()
    visitor.settle()
    assert page.locator(".mi-strip img").first.get_attribute("src") != before

    with page.expect_download() as waiting:
        page.get_by_role("button", name="Table (CSV)").click()
    table = list(csv.DictReader(Path(waiting.value.path()).read_text().splitlines()))
    assert [(row["checkpoint"], row["step"]) for row in table] == [
        ("epoch_1.pth", "40"), ("epoch_2.pth", "80"), ("epoch_3.pth", "120"),
    ]  # fmt: skip
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Manifest (JSON)").last.click()
    made = json.loads(Path(waiting.value.path()).read_text())
    words = shlex.split(made["command"])
    assert [words[at + 1] for at, word in enumerate(words) if word == "--series"] == ["epoch_2.pth", "epoch_3.pth"]
    assert "--common-scale" in words
    assert len({one["sha256"] for one in made["checkpoints"]}) == 3
    visitor.check_calm()
