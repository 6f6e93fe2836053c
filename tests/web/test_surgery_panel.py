"""The panel previews what is chosen, writes it by the writers of every page, and shows the code that freezes."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest
from torch import nn

from inspector.web import uploads
from inspector.web.session import Hand
from tests.surgery.networks import Detector, trained
from tests.web.finishing import finish
from tests.web.recents import opened_before

PAGE = """
import streamlit as st
from inspector.web import reports, session
from inspector.web.surgery import show_surgery
hand = session.in_hand()
state = reports.checkpoint_of(hand).weights
show_surgery(hand, state, reports.recognition_of(hand, state))
"""


def panel(app: AppTest, model: nn.Module) -> AppTest:
    """The panel alone, with that network in hand; `app` sets up the store and the jobs."""
    raw = io.BytesIO()
    torch.save(model.state_dict(), raw)
    stored = uploads.the_store().put_bytes(raw.getvalue(), name="net.pth", owner="me")
    found = AppTest.from_string(PAGE, default_timeout=60)
    opened_before(found, [Hand(sha256=stored.sha256, name="net.pth")])
    found.run()
    assert not found.exception
    return found


def html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def test_a_preview_and_the_file(app: AppTest) -> None:
    page = panel(app, trained(Detector()))
    assert not page.button
    page.multiselect(key="surgery-drop").select("neck").run()
    assert "neck.{weight,bias}" in html(page) and "18 tensors" in html(page)
    page.button(key="surgery-write").click().run()
    finish(page)
    assert not page.exception
    (made,) = uploads.the_store().exports.rglob("*.safetensors")
    expected = {name for name in Detector().state_dict() if not name.startswith("neck.")}
    assert set(load_file(made)) == expected and "net_surgery.safetensors" in html(page)


def test_a_refusal_is_a_sentence(app: AppTest) -> None:
    page = panel(app, trained(Detector()))
    page.selectbox(key="surgery-head").select("neck").run()
    assert not page.exception and "neck is no head for sure" in page.error[0].value
    assert not page.button


def test_the_code_that_freezes(app: AppTest) -> None:
    page = panel(app, trained(Detector()))
    page.multiselect(key="surgery-freeze").select("body").run()
    assert not page.exception
    assert "FROZEN = ('body',)" in page.code[0].value and Path("net.pth").name in page.code[0].value
