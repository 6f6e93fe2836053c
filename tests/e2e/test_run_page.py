"""The Run page in a real browser: a folder goes up as one tar, the answer comes, the choice stands in the address."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.run.made import save_all, states

pytestmark = pytest.mark.browser


def test_from_a_dropped_folder_to_the_layers_and_a_table(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "training"
    folder.mkdir()
    save_all(folder, states(5))
    (folder / "notes.txt").write_text("a long training")
    visitor.open("/run")
    page = visitor.page
    page.get_by_test_id("inspector-folder").set_input_files(folder)
    page.locator(".mi-answer").wait_for()
    assert "5 checkpoints of 7 tensors" in page.locator(".mi-answer").inner_text()
    page.get_by_role("radio", name="Sign flips").click()
    page.get_by_role("figure", name="Sign flips of each module over the run").wait_for()
    page.wait_for_url(re.compile("run-show=Sign"))
    page.get_by_role("figure", name=re.compile("Histograms of .* over the run")).wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Checkpoints (CSV)").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1.0", "2.0", "3.0", "4.0", "5.0"]
    visitor.settle()
    visitor.check_calm()
