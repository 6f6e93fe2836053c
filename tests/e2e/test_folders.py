"""Several files at once through the drop zone: a folder is one checkpoint, and its parts are listed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
PATIENCE = 60_000


def _sharded(folder: Path) -> Path:
    folder.mkdir()
    save_file({"a.weight": torch.ones(3, 2)}, folder / "model-00001-of-00002.safetensors")
    save_file({"b.weight": torch.zeros(4)}, folder / "model-00002-of-00002.safetensors")
    places = {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors"}
    index = {"metadata": {"total_size": 40}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def _arrive(visitor) -> None:  # type: ignore[no-untyped-def]
    visitor.page.wait_for_url(re.compile("overview"), timeout=60_000)
    visitor.settle()
    assert "model-00002-of-00002.safetensors" in visitor.main.inner_html()
    visitor.visit("Contents")
    assert {"a.weight", "b.weight"} <= set(re.findall(r"[ab]\.weight", visitor.main.inner_html()))
    visitor.check_calm()


def test_a_folder_goes_up_as_one(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """With names that no plain tar header could hold."""
    folder = _sharded(tmp_path / "run ümlaut")
    (folder / ("é" * 120)).write_text("a name of 240 bytes")
    visitor.open("/")
    visitor.page.get_by_test_id("inspector-folder").set_input_files(folder)
    _arrive(visitor)


def test_several_files_go_up_as_one(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = _sharded(tmp_path / "run")
    visitor.open("/")
    visitor.page.get_by_test_id("inspector-file").set_input_files(sorted(folder.iterdir()))
    _arrive(visitor)


def test_a_mixed_folder_is_a_table_to_open_files_from_and_come_back(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "photos 2024"
    (folder / "old").mkdir(parents=True)
    for name, where in (("shapes.safetensors", "a.safetensors"), ("hostile.pth", "old/evil.pth")):
        (folder / where).write_bytes((SAMPLES / name).read_bytes())
    (folder / "read me.txt").write_text("hello")
    visitor.open("/")
    visitor.page.get_by_test_id("inspector-folder").set_input_files(folder)
    visitor.page.wait_for_url(re.compile("files"), timeout=PATIENCE)
    table = visitor.page.get_by_test_id("stDataFrame")
    table.wait_for(timeout=PATIENCE)
    visitor.settle()
    assert visitor.page.locator(".mi-title h1").inner_text() == "photos 2024"
    assert "2 checkpoints, 1 other file. 1 file has an error." in visitor.text()
    box = table.bounding_box()
    # The first row's own box; the head is one row.
    visitor.page.mouse.click(box["x"] + 18, box["y"] + 35 + 17)
    visitor.page.get_by_role("button", name="Open it").click()
    visitor.page.wait_for_url(re.compile("overview"), timeout=PATIENCE)
    visitor.settle()
    assert visitor.page.locator(".mi-title h1").inner_text() == "evil.pth"
    visitor.page.reload()
    visitor.page.get_by_role("link", name="photos 2024").click()
    visitor.page.get_by_test_id("stDataFrame").wait_for(timeout=PATIENCE)
    visitor.settle()
    assert visitor.page.locator(".mi-title h1").inner_text() == "photos 2024"
    visitor.check_calm()
