"""Every page without a file: one sentence on what it shows, and a way to a file. No browser, no torch."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.finishing import finish

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "overview": ("Overview", "whether it loads"),
    "contents": ("Contents", "every global a real unpickle would import"),
    "tensors": ("Tensors", "Every tensor with shape"),
    "weights": ("Weights", "heat strip"),
    "projector": ("Projector", "rows of any tensor as a map"),
    "architecture": ("Architecture", "recognised model with its evidence"),
    "explain": ("Explain", "heat map over your picture"),
    "evaluation": ("Evaluation", "which classes it confuses"),
    "compare": ("Compare", "what the numbers prove"),
    "repair": ("Repair", "keeps the file from loading"),
    "convert": ("Convert", "in another element type"),
}


def test_a_path_on_the_server_is_opened_as_soon_as_it_is_chosen(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    torch.save({"a": torch.ones(2)}, tmp_path / "open" / "net.pth")
    monkeypatch.setenv("INSPECTOR_ROOT", str(tmp_path / "open"))
    app.run()
    app.selectbox(key="server-path").select("net.pth").run()
    assert not app.exception and app.session_state["hand"].name == "net.pth"


def _bodies(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


def _html(app: AppTest) -> str:
    return " ".join(_bodies(app))


def _words(app: AppTest) -> str:
    return " ".join(m.value for m in app.markdown).replace("\\", "")


def test_the_open_page_offers_a_box_and_the_promise(app: AppTest) -> None:
    app.run()
    assert not app.exception
    assert "Open a checkpoint" in _html(app)
    assert len(app.file_uploader) == 1


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_page_says_what_it_will_show(app: AppTest, page: str) -> None:
    heading, says = PAGES[page]
    app.run().switch_page(f"pages/{page}.py").run()
    assert not app.exception
    assert f"<h1>{heading}</h1>" in _html(app)
    assert says in _words(app)
    assert not app.error


@pytest.mark.parametrize("page", PAGES)
def test_a_file_that_has_gone_is_one_sentence(app: AppTest, page: str) -> None:
    app.session_state["hand"] = Hand(sha256="0" * 64, name="lost [x](http://x.test).pth")
    app.run().switch_page(f"pages/{page}.py").run()
    assert not app.exception
    (error,) = app.error
    assert "is not on the server any more" in error.value.replace("\\", "")
    # The name came from a visitor: its brackets must not become a link.
    assert "\\[x\\]\\(http" in error.value


def _hold(app: AppTest, tensors: dict[str, torch.Tensor], folder: Path, name: str = "twins.pth") -> None:
    torch.save(tensors, folder / name)
    stored = uploads.the_store().put_bytes((folder / name).read_bytes(), name=name, owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name=name)


def test_an_open_question_is_answered_on_the_page_and_can_be_changed(app: AppTest, tmp_path: Path) -> None:
    twins = {f"{p}.fc.{leaf}": torch.ones(3, 3) for p in ("ema_model", "online_model") for leaf in ("weight", "bias")}
    _hold(app, twins, tmp_path)
    app.session_state["target-way"] = "keys"
    app.run().switch_page("pages/repair.py").run()
    app.text_area[0].set_value("fc.weight\nfc.bias").run()
    assert not app.exception
    assert "Which one?" in app.radio[0].label.replace("\\", "")
    assert app.radio[0].value is None
    assert "strict=True" not in _html(app)
    for choice in ("ema_model", "online_model", "ema_model"):
        app.radio[0].set_value(choice).run()
        assert not app.exception
        assert app.radio[0].value == choice
        rules = next(body for body in _bodies(app) if 'data-table="rules"' in body)
        kept = f'{choice}.fc.weight</code><span class="mi-arrow">→</span><code class="mi-code">fc.weight</code>'
        assert kept in rules


def test_a_link_to_a_file_that_has_gone_asks_for_it_and_shows_its_page(app: AppTest, tmp_path: Path) -> None:
    torch.save({"module.fc.weight": torch.ones(2, 2)}, tmp_path / "a.pth")
    content = (tmp_path / "a.pth").read_bytes()
    app.query_params["file"], app.query_params["name"] = hashlib.sha256(content).hexdigest(), "ours.pth"
    app.switch_page("pages/contents.py").run()
    assert not app.exception and not app.error
    assert "The file of this link is not on the server any more" in _html(app)
    # Another file is said to be another one, and is not taken unasked.
    app.file_uploader[0].upload("b.pth", content + b"x", "application/octet-stream").run()
    assert "b.pth is another file" in app.warning[0].value.replace("\\", "") and "hand" not in app.session_state
    app.run()
    app.file_uploader[0].upload("again.pth", content, "application/octet-stream").run()
    assert not app.exception and app.session_state["hand"].name == "ours.pth"
    assert "module" in _html(app) and "is not on the server" not in _html(app)


@pytest.mark.parametrize("page", ["contents", "files"])
def test_a_file_that_came_before_the_page_was_drawn_anew_is_taken_up(app: AppTest, tmp_path: Path, page: str) -> None:
    """As from a browser, whose upload ends in the store before the page hears of it: it then showed its empty state."""
    torch.save({"module.fc.weight": torch.ones(2, 2)}, tmp_path / "a.pth")
    content = (tmp_path / "a.pth").read_bytes()
    digest, name = ("file", "name") if page == "contents" else ("shelf", "shelf-name")
    if page == "files":
        with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
            archive.writestr("a.pth", content)
            archive.writestr("b.pth", content)
        content = (tmp_path / "many.zip").read_bytes()
    app.query_params[digest], app.query_params[name] = hashlib.sha256(content).hexdigest(), "ours"
    app.switch_page(f"pages/{page}.py").run()
    what = "file" if page == "contents" else "folder"
    assert not app.exception and not app.error
    assert f"The {what} of this link is not on the server any more" in _html(app) and "ours" in _words(app)
    uploads.the_store().put_bytes(content, name="again", owner="me")
    app.run()
    assert not app.exception and not app.error and "is not on the server" not in _html(app)
    assert app.query_params[name] == "ours" and app.query_params[digest] == hashlib.sha256(content).hexdigest()
    assert ("3 globals" if page == "contents" else "Which of these files is what") in _html(app) + _words(app)


def test_a_link_whose_file_is_gone_brings_back_the_chosen_state_dict_once_it_is_dropped(
    app: AppTest, tmp_path: Path
) -> None:
    """What the link said of the file was taken out of the address while the file was asked for."""
    torch.save({"model": {"a": torch.zeros(2), "b": torch.ones(3)}, "ema": {"a": torch.ones(2)}}, tmp_path / "two.pth")
    raw = (tmp_path / "two.pth").read_bytes()
    asked = {"file": hashlib.sha256(raw).hexdigest(), "name": "two.pth", "state": "ema"}
    for name, value in asked.items():
        app.query_params[name] = value
    app.run().switch_page("pages/tensors.py").run()
    assert "not on the server any more" in _html(app) and app.query_params["state"] == "ema"
    app.file_uploader[0].upload("two.pth", raw, "application/octet-stream").run()
    assert not app.exception and app.query_params["state"] == "ema"
    assert app.session_state[f"state-of/{asked['file']}"] == ("ema",)


def test_a_gone_link_to_an_address_is_not_said_to_have_a_sha256(app: AppTest) -> None:
    app.query_params["file"], app.query_params["name"] = f"r{'0' * 63}", "<script>alert(1)</script>.pth"
    app.switch_page("pages/contents.py").run()
    assert not app.exception and not app.error
    assert "It stayed at an address" in _html(app) and "sha256" not in _html(app)
    assert not app.file_uploader
    shown = next(one.value for one in app.markdown if "script" in one.value)
    assert "alert" in shown.replace("\\", "") and "/script" in shown.replace("\\", "")


@pytest.mark.parametrize(
    ("shelf", "says"), [("../../etc", "it is not a sha256"), (f"r{'0' * 63}", "It stayed at an address")]
)
def test_a_shelf_that_is_no_digest_is_not_said_to_have_one(app: AppTest, shelf: str, says: str) -> None:
    app.query_params["shelf"] = shelf
    app.switch_page("pages/files.py").run()
    told = (_html(app) + _words(app) + "".join(error.value for error in app.error)).replace("\\", "")
    assert not app.exception and says in told and shelf[:12] not in told and "sha256 begins" not in told


def test_a_wrong_file_is_one_sentence_and_the_session_goes_on(app: AppTest) -> None:
    app.run()
    app.file_uploader[0].upload("notes.pth", b"<html><body>not found</body></html>", "text/plain").run()
    assert not app.exception
    (error,) = app.error
    assert "notes.pth is a web page" in error.value.replace("\\", "")
    app.switch_page("pages/open.py").run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("address", ["garbage", "../../etc/passwd", "A" * 64, "f" * 63, "\x00"])
def test_an_address_that_names_no_file_says_so(app: AppTest, address: str) -> None:
    app.query_params["file"] = address
    app.run()
    assert not app.exception
    (error,) = app.error
    assert "The address names no file" in error.value.replace("\\", "")
    app.run()
    assert not app.error


def test_a_link_brings_the_name_along_and_nothing_of_it_is_trusted(app: AppTest) -> None:
    stored = uploads.the_store().put_bytes(b"<html></html>", name="theirs.pth", owner="somebody")
    app.query_params["file"] = stored.sha256
    app.query_params["name"] = "../<b>mine</b>\u202e.pth"
    app.run()
    hand = app.session_state["hand"]
    assert (hand.sha256, hand.name) == (stored.sha256, "<b>mine</b>.pth")
    assert "theirs" not in _html(app)


def test_a_filter_never_shows_another_tensor_than_the_one_chosen(app: AppTest, tmp_path: Path) -> None:
    _hold(app, {"first.weight": torch.zeros(2), "second.weight": torch.ones(2)}, tmp_path)
    app.run().switch_page("pages/tensors.py").run()
    before = app.dataframe[0].proto.id
    app.text_input[0].set_value("second").run()
    assert app.dataframe[0].proto.id != before


def test_numbers_that_had_to_be_decoded_stand_beside_the_others(app: AppTest, tmp_path: Path) -> None:
    _hold(app, {"wave": torch.ones(2, 2) * 3j, "fc.weight": torch.eye(2)}, tmp_path)
    app.run().switch_page("pages/weights.py").run()
    finish(app)
    assert not app.exception
    rows = app.dataframe[0].value
    assert rows["Maximum"].tolist() == [3.0, 1.0]
    assert rows["Measured as"].tolist() == ["real and imaginary parts", ""]
    assert "Not measured" not in " ".join(heading.value for heading in app.header)


def test_what_a_finding_is_about_is_a_button_where_it_is_a_tensor(app: AppTest, tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    weights["weight"][0, 0] = torch.nan
    _hold(app, {"model": weights, "optimizer": optimizer.state_dict()}, tmp_path)
    app.run().switch_page("pages/weights.py").run()
    finish(app)
    assert not app.exception
    html = _html(app)
    assert "Resuming now would train" in html, "a finding about the optimizer"
    ways = [button.label for button in app.button if str(button.key).startswith("open-")]
    assert ways == ["weight"]
    folded = [expander.label for expander in app.expander]
    assert any("1 remark" in label for label in folded) and not any("remarks" in label for label in folded)


def test_a_rule_in_the_table_is_not_said_again_as_a_finding(app: AppTest, tmp_path: Path) -> None:
    _hold(app, {f"module.fc.{leaf}": torch.ones(3, 3) for leaf in ("weight", "bias")}, tmp_path)
    app.session_state["target-way"] = "keys"
    app.run().switch_page("pages/repair.py").run()
    app.text_area[0].set_value("fc.weight\nfc.bias").run()
    assert not app.exception
    assert any('data-table="rules"' in body for body in _bodies(app))
    assert 'data-finding="shapes-not-checked"' in _html(app)
    assert "Drop the segment" not in _html(app)


def test_a_refusal_is_said_once(app: AppTest, tmp_path: Path) -> None:
    _hold(app, {f"a{n}.weight": torch.ones(3, 3) for n in range(100)}, tmp_path)
    app.session_state["target-way"] = "keys"
    app.run().switch_page("pages/repair.py").run()
    app.text_area[0].set_value("fc.weight\nfc.bias").run()
    assert not app.exception
    assert not app.warning
    (answer,) = [body for body in _bodies(app) if 'class="mi-answer"' in body]
    assert "None of the file" in answer
    assert 'data-finding="no-fit"' not in _html(app)
    assert '<code class="mi-code">a*.weight</code><span class="mi-count">100</span>' in _html(app)


def test_which_of_two_networks_is_asked_once_and_holds_on_every_page(app: AppTest, tmp_path: Path) -> None:
    pair = {"generator": {"up.weight": torch.ones(4, 3), "up.bias": torch.ones(4)}}
    pair["discriminator"] = {"down.weight": torch.ones(1, 4), "down.bias": torch.ones(1)}
    _hold(app, pair, tmp_path, "gan.pth")  # type: ignore[arg-type]
    app.switch_page("pages/overview.py").run()
    (question,) = app.selectbox
    assert question.label == "Which of its 2 sets of weights is meant?" and question.value is None
    assert "mi-verdict mi-warning" in _html(app) and "Choose one of them on the page" in _html(app)
    question.set_value(1).run()
    assert not app.exception
    assert "this is &quot;discriminator&quot;" in _html(app)
    for page in ("repair", "weights"):
        app.switch_page(f"pages/{page}.py").run()
        assert app.selectbox[0].label == "State dict" and app.selectbox[0].value == 1
    app.selectbox[0].set_value(0).run()
    app.switch_page("pages/overview.py").run()
    assert "this is &quot;generator&quot;" in _html(app)


def test_a_tensor_with_an_empty_name_is_not_chosen_by_itself(app: AppTest, tmp_path: Path) -> None:
    _hold(app, {"": torch.ones(4, 4), "a.weight": torch.ones(4, 4)}, tmp_path)
    app.run().switch_page("pages/weights.py").run()
    finish(app)
    assert not app.exception
    box = next(box for box in app.selectbox if box.label == "Look at a tensor")
    assert box.value is None and len(box.options) == 2
    assert "tensor" not in app.query_params
