"""A large file on a slow line: the page says what it is while it is sent, and the stored file's view takes over."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

# Over the size from which slices are sent.
NBYTES = 36 << 20


def sparse_file(path: Path) -> Path:
    header = json.dumps({"fc.weight": {"dtype": "F32", "shape": [NBYTES // 4], "data_offsets": [0, NBYTES]}}).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + NBYTES)
    return path


def test_the_header_is_told_while_the_file_is_sent(visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    page = visitor.page
    visitor.open("/")
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    line.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 2e6},
    )
    page.get_by_test_id("inspector-file").set_input_files(sparse_file(tmp_path / "net.safetensors"))
    early = page.locator(".st-key-provisional")
    early.get_by_text("Still uploading.").wait_for()
    assert "37.7 MB" in early.inner_text() and "9.44 M" in early.inner_text()
    page.locator(".busy .told").filter(has_text=re.compile(r"[kM]B of 37\.7 MB, \d+ %")).wait_for()
    assert page.get_by_text("Try one").count() == 0
    # The rest goes at full speed.
    line.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    page.wait_for_url(re.compile("overview"))
    page.get_by_text("sha256").first.wait_for()
    assert early.count() == 0
    visitor.check_calm()
