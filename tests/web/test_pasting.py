"""The paste box on the Open and Repair pages. No browser."""

from __future__ import annotations

from pathlib import Path

import torch
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.session import Hand

ROOT = Path(__file__).resolve().parents[2]
MESSAGE = (
    'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "fc.weight", "fc.bias". '
    '\n\tUnexpected key(s) in state_dict: "module.fc.weight", "module.fc.bias". '
)


def _html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def test_the_open_page_explains_without_a_file(app: AppTest) -> None:
    app.run()
    app.text_area(key="pasted-open").set_value(MESSAGE).run()
    assert not app.exception
    assert "drop the segment &quot;module&quot;" in _html(app)
    assert "key.removeprefix(&#x27;module.&#x27;)" in str([c.value for c in app.code]).replace("'", "&#x27;")


def test_half_a_message_shows_both_causes(app: AppTest) -> None:
    app.run()
    app.text_area(key="pasted-open").set_value(
        'Unexpected key(s) in state_dict: "module.fc.weight", "module.fc.bias"'
    ).run()
    assert not app.exception
    shown = _html(app)
    assert "<b>Either</b> The file was saved from a DataParallel" in shown
    assert "<b>Or</b> The model is wrapped as well" in shown
    assert "nothing of the model is missing" not in shown


def test_nothing_of_the_text_becomes_markup(app: AppTest) -> None:
    app.run()
    evil = "<img src=x onerror=alert(1)>"
    text = MESSAGE.replace("fc.bias", evil) + f"KeyError: 'state_dict' {evil} [x](http://x.test) " + evil
    app.text_area(key="pasted-open").set_value(text).run()
    assert not app.exception
    assert "<img" not in _html(app)
    assert "&lt;img" in _html(app)
    assert not any("http://x.test" in m.value for m in app.markdown)


def test_the_repair_page_explains_with_the_file(app: AppTest, tmp_path: Path) -> None:
    torch.save({"module.fc.weight": torch.ones(2, 2), "module.fc.bias": torch.ones(2)}, tmp_path / "a.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "a.pth").read_bytes(), name="a.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="a.pth")
    app.run().switch_page("pages/repair.py").run()
    app.text_area(key="pasted-repair").set_value(MESSAGE).run()
    assert not app.exception
    assert "agree with this file" in _html(app)
    app.text_area(key="pasted-repair").set_value(MESSAGE[MESSAGE.index("Unexpected") :]).run()
    assert not app.exception
    assert "<b>Either</b>" in _html(app)
    assert "agree with this file" in _html(app)
