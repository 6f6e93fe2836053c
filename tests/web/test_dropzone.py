"""What the boxes for files say of how large a file may be: our limit, and never Streamlit's own."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from inspector.web import dropzone, uploads


def test_the_drop_zone_says_up_to_which_size_a_file_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[dict[str, Any]] = []

    class Nothing:
        stored = None

    def component(**given: Any) -> Nothing:
        drawn.append(given["data"])
        return Nothing()

    monkeypatch.setattr(dropzone, "_component", component)
    monkeypatch.setattr(dropzone, "is_mounted", lambda: True)
    monkeypatch.setattr(dropzone, "issue_token", lambda _: "token")
    monkeypatch.setattr(dropzone.session, "owner", lambda: "me")
    monkeypatch.setattr(uploads.the_store(), "file_nbytes", 3 * 10**9)
    dropzone.drop_zone()
    monkeypatch.setattr(uploads.the_store(), "quota_nbytes", 5 * 10**8)
    dropzone.drop_zone(says="class folders")
    assert [data["says"] for data in drawn] == [
        f"{dropzone.KNOWN_ENDINGS} … any name, up to 3.00 GB",
        "class folders, up to 500 MB",
    ]


def test_without_the_route_streamlits_box_has_our_limit(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads.the_store(), "file_nbytes", 7 << 20)
    app.run().switch_page("pages/open.py").run()
    boxes = [one.proto for one in app.get("file_uploader") if one.proto.label == "Checkpoint"]
    assert [box.max_upload_size_mb for box in boxes] == [7]
