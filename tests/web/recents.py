"""Files that a visitor of the tests opened before."""

from __future__ import annotations

from collections.abc import Sequence

from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.session import Hand


def remember(app: AppTest, hands: Sequence[Hand]) -> None:
    """The visitor "me" opened these, the first one last."""
    app.session_state["owner"] = "me"
    for hand in reversed(hands):
        assert uploads.the_store().claim(hand.sha256, name=hand.name, owner="me") is not None


def opened_before(app: AppTest, hands: Sequence[Hand]) -> None:
    """And has the first in hand."""
    remember(app, hands)
    app.session_state["hand"] = hands[0]
