"""The Evaluation page in a real browser: a folder of class folders goes up, the answer comes, a worst case leads to
Explain."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from sample_models.labelled import write_labelled

pytestmark = pytest.mark.browser


def test_from_a_dropped_folder_to_the_worst_case(visitor, samples: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "val"
    with zipfile.ZipFile(write_labelled(tmp_path / "all.zip", each=8)) as archive:
        archive.extractall(folder)
    (folder / "square" / "notes.txt").write_text("not a picture")
    visitor.upload(samples / "shapes.pth")
    visitor.visit("Evaluation")
    page = visitor.page
    page.get_by_test_id("inspector-folder").set_input_files(folder)
    page.get_by_text(re.compile(r"val: 32 pictures in 4 class folders, 1 file left out")).wait_for()
    page.get_by_role("button", name=re.compile("Evaluate · 32 pictures")).click()
    page.locator(".mi-answer").wait_for()
    assert re.search(r"% right \(95 % interval .* of 32 pictures", page.locator(".mi-answer").inner_text())
    page.get_by_role("figure", name="Confusion matrix: class by answer").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile(r"Pictures \(CSV\)")).click()
    assert len(Path(download.value.path()).read_text().splitlines()) == 33
    explain = page.get_by_role("button", name=re.compile("Explain$")).first
    explain.wait_for()
    page.get_by_role("img", name=re.compile("taken for")).first.wait_for()
    visitor.settle()
    visitor.check_calm()
    explain.click()
    page.locator(".mi-title h1").filter(has_text=re.compile("^Explain$")).wait_for()
    page.locator(".mi-scores").first.wait_for()
    visitor.settle()
    visitor.check_calm()
