"""The open tab of the Architecture page in the address: written where it is not the first, opened by a link."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.web import architecture_views, uploads
from inspector.web.session import Hand


@pytest.fixture
def written(app: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """What is written into the address; a file that nobody knows is in hand."""
    found: dict[str, str] = {}
    monkeypatch.setattr(architecture_views, "write_address", lambda values, *, key: found.update(values))
    file = tmp_path / "own.pth"
    torch.save({f"net.{i}.weight": torch.rand(3, 5 + i) for i in range(3)}, file)
    stored = uploads.the_store().put_bytes(file.read_bytes(), name="own.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="own.pth")
    return found


@pytest.mark.parametrize(
    ("asked", "opened", "says"),
    [("", "Tree", ""), ("Surgery", "Surgery", "Surgery"), ("Tree", "Tree", ""), ("nothing of it", "Tree", "")],
)
def test_a_link_opens_its_tab_and_one_that_there_is_none_of_is_no_harm(
    app: AppTest, written: dict[str, str], asked: str, opened: str, says: str
) -> None:
    if asked:
        app.query_params["tab"] = asked
    app.run().switch_page("pages/architecture.py").run()
    assert not app.exception
    assert app.session_state["architecture-view"] == opened and written == {"tab": says}


def test_what_is_opened_on_the_page_counts_more_than_the_link(app: AppTest, written: dict[str, str]) -> None:
    app.query_params["tab"] = "Surgery"
    app.run().switch_page("pages/architecture.py").run()
    app.session_state["architecture-view"] = "Evidence"
    app.run()
    assert not app.exception
    assert app.session_state["architecture-view"] == "Evidence" and written == {"tab": "Evidence"}
