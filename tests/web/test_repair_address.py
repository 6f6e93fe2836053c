"""A link to the Repair page has what was answered on it, and answers nothing that the page does not ask."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.repair import address
from inspector.web.session import Hand

ROOT = Path(__file__).resolve().parents[2]
TWINS = {f"{twin}.fc.{n}": torch.ones(2, 2) for twin in ("ema_model", "online_model") for n in ("weight", "scale")}
KEYS = "fc.weight\nfc.scale"


@pytest.fixture
def written(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the page wrote into the address at last."""
    del app
    found: dict[str, str] = {}

    def write(values: dict[str, str], *, key: str) -> None:
        assert key == "repair-address-line"
        found.clear()
        found.update(values)

    monkeypatch.setattr(address, "write_address", write)
    return found


def _opened(tensors: dict[str, torch.Tensor], folder: Path, keys: str = "", **query: str) -> AppTest:
    """A visit of its own."""
    app = AppTest.from_file(str(ROOT / "ui.py"), default_timeout=120)
    torch.save(tensors, folder / "own.pth")
    stored = uploads.the_store().put_bytes((folder / "own.pth").read_bytes(), name="own.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="own.pth")
    if keys:
        app.session_state["target-way"] = "keys"
    for name, value in query.items():
        if value:
            app.query_params[name] = value
    app.run().switch_page("pages/repair.py").run()
    if keys:
        app.text_area[0].set_value(keys).run()
    assert not app.exception and not app.error
    return app


def _left(app: AppTest) -> str:
    return " ".join(one.value.replace("\\", "") for one in app.caption if "The link" in one.value)


def _headings(app: AppTest) -> list[str]:
    return [heading.value for heading in app.header]


def test_an_answer_is_in_the_link_and_there_again_with_it(written: dict[str, str], tmp_path: Path) -> None:
    app = _opened(TWINS, tmp_path, KEYS)
    assert not any(written.values())
    app.radio[0].set_value("online_model").run()
    assert written["choose"].endswith("=online_model") and written["to"] and "Verified" in _headings(app)
    link = dict(written)
    again = _opened(TWINS, tmp_path, KEYS, **link)
    assert again.radio[0].value == "online_model" and "Verified" in _headings(again) and not _left(again)
    assert dict(written) == link
    # It stays a question that can be answered otherwise.
    again.radio[0].set_value("ema_model").run()
    assert written["choose"].endswith("=ema_model") and not again.exception


def test_a_link_s_answers_are_those_of_the_names_they_were_given_for(written: dict[str, str], tmp_path: Path) -> None:
    _opened(TWINS, tmp_path, KEYS).radio[0].set_value("online_model").run()
    link = dict(written)
    other = _opened(TWINS, tmp_path, "fc.weight", **link)
    assert "Verified" not in _headings(other) and all(box.value is None for box in other.radio)


def test_a_part_of_a_named_model_is_in_the_link(written: dict[str, str], tmp_path: Path) -> None:
    net = torchvision.models.get_model("squeezenet1_1", weights=None)
    part = {name: tensor for name, tensor in net.state_dict().items() if not name.startswith("classifier.")}
    app = _opened(part, tmp_path)
    app.session_state["target-way"], app.session_state["target-name"] = "named", "torchvision/squeezenet1_1"
    app.run()
    app.checkbox(key="partial").check().run()
    assert (written["target"], written["part"]) == ("torchvision/squeezenet1_1", "1")
    again = _opened(part, tmp_path, **written)
    assert again.selectbox(key="target-name").value == "torchvision/squeezenet1_1"
    assert again.checkbox(key="partial").value and "The part as a file" in _headings(again) and not _left(again)


def test_what_a_link_makes_up_changes_nothing_and_is_said(written: dict[str, str], tmp_path: Path) -> None:
    app = _opened(TWINS, tmp_path, KEYS)
    app.radio[0].set_value("online_model").run()
    key, to = written["choose"].partition("=")[0], written["to"]
    made_up = {
        "choose": f"{key}=nothing&else=online_model",
        "accept": "../../etc=1&drop-all=1",
        "part": "1",
        "target": "torchvision/none",
    }
    again = _opened(TWINS, tmp_path, KEYS, to=to, **made_up)
    assert again.radio[0].value is None and "Verified" not in _headings(again)
    said = _left(again)
    assert "asks for “torchvision/none”, which is no model that is known here: this is a list of keys." in said
    assert f"The link answers “{key}=nothing”, “else=online_model”, “../../etc” and 2 more, which is not asked" in said
    again.radio[0].set_value("online_model").run()
    assert "The link answers" not in _left(again) and "Verified" in _headings(again)
    # Nothing of it comes back later.
    assert written["accept"] == "" and written["part"] == ""


@pytest.mark.parametrize("text", ["&" * 5000, "a=b&" * 101, "%", "=", "%00=%FF"])
def test_an_address_of_nonsense_is_no_harm(written: dict[str, str], text: str, tmp_path: Path) -> None:
    app = _opened(TWINS, tmp_path, KEYS)
    app.radio[0].set_value("online_model").run()
    again = _opened(TWINS, tmp_path, KEYS, to=written["to"], choose=text, accept=text, part=text)
    assert again.radio[0].value is None


def test_more_than_an_address_holds_is_left_out() -> None:
    from inspector.architectures.key_lists import target_of_list
    from inspector.web.repair.choices import Answers

    target = target_of_list("\n".join(["a", "b"]), "the pasted list")
    few = address.chosen(Answers(choose={"q:1": "a=b&c"}, accept={"cast"}), target)
    assert dict(address._pairs(few["choose"])) == {"q:1": "a=b&c"} and dict(address._pairs(few["accept"])) == {
        "cast": "1"
    }
    assert (
        few["to"] and few["to"] != address.chosen(Answers(partial=True), target_of_list("a", "the pasted list"))["to"]
    )
    many = Answers(choose={f"q:{k}": "a" for k in range(101)}, accept={"cast"})
    assert not any(address.chosen(many, target).values())
