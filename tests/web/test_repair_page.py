"""The Repair page in its states: a part, an answer to wait for, thousands of keys, one's own code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest

from inspector.keys.report import Evidence
from inspector.web import own_code, uploads
from inspector.web.repair import lists
from inspector.web.session import Hand
from tests.web.finishing import finish
from tests.web.recents import opened_before, remember

ROOT = Path(__file__).resolve().parents[2]
PAIR = (("model", 1.0), ("model_ema", 2.0))
MODEL = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 2)
    def forward(self, x):
        return self.b(self.a(x))

build = Net
"""


def _open(app: AppTest, tensors: Mapping[str, object], folder: Path, way: str = "keys") -> None:
    file = folder / "own.pth"
    torch.save(dict(tensors), file)
    stored = uploads.the_store().put_bytes(file.read_bytes(), name="own.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="own.pth")
    app.session_state["target-way"] = way
    app.run().switch_page("pages/repair.py").run()


def _html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def _headings(app: AppTest) -> list[str]:
    return [heading.value for heading in app.header]


def test_a_part_is_exported_once_asked_for(app: AppTest, tmp_path: Path) -> None:
    names = [f"blocks.{i}.{leaf}" for i in range(12) for leaf in ("weight", "bias")]
    _open(app, {f"module.{n}": torch.ones(2) for n in names}, tmp_path)
    app.text_area[0].set_value("\n".join([*names, "fc.weight", "fc.bias"])).run()
    assert _headings(app) == ["Left over", "Rules"]
    assert "fc.{weight,bias}" in _html(app) and "2 keys missing" in _html(app)
    app.checkbox(key="partial").check().run()
    assert not app.exception
    assert _headings(app) == ["The part as a file", "Left over", "Rules", "Verified", "Python"]
    assert "staying at the model" in _html(app)
    assert "strict=False" in app.code[0].value
    app.checkbox(key="partial").uncheck().run()
    assert _headings(app) == ["Left over", "Rules"]


def test_an_open_question_stands_before_the_lists(app: AppTest, tmp_path: Path) -> None:
    twins = {f"{twin}.fc.{n}": torch.ones(2, 2) for twin in ("ema_model", "online_model") for n in ("weight", "scale")}
    _open(app, twins, tmp_path)
    app.text_area[0].set_value("fc.weight\nfc.scale").run()
    assert "Which one?" in app.radio[0].label.replace("\\", "") and "Which one?" not in _html(app)
    assert "1 question to answer first: the file does not tell." in _html(app)
    assert any("Not placed until that is answered" in box.label for box in app.expander)
    # Nothing is said about what lies waiting, which would look lost or foreign.
    assert "data-finding" not in _html(app)
    app.radio[0].set_value("ema_model").run()
    assert not app.exception
    assert "Verified" in _headings(app)
    assert not any("Not placed until" in box.label for box in app.expander)


def test_what_a_pasted_list_has_of_shapes_is_said(app: AppTest, tmp_path: Path) -> None:
    _open(app, {"fc.weight": torch.ones(2, 2), "fc.bias": torch.ones(2)}, tmp_path)
    for text, says in (
        ("fc.weight\nfc.bias", "shapes cannot be compared"),
        ("fc.weight (2, 2)\nfc.bias (2,)", "Names and shapes that you pasted."),
    ):
        app.text_area[0].set_value(text).run()
        assert not app.exception and says in _html(app)


def test_three_thousand_keys_are_folded_searched_and_listed(app: AppTest, tmp_path: Path) -> None:
    names = [f"layers.{i}.{part}.{leaf}" for i in range(250) for part in "abcdef" for leaf in ("weight", "bias")]
    _open(app, {n: torch.zeros(1) for n in names}, tmp_path)
    app.text_area[0].set_value("\n".join(f"other.{i}.w" for i in range(3000))).run()
    html = _html(app)
    assert '>other.*.w</code><span class="mi-count">3,000</span>' in html
    assert '>layers.*.a.{weight,bias}</code><span class="mi-count">500</span>' in html
    # Of each pattern some hundreds are sent, not all.
    assert len(html) < 1_000_000
    app.text_input(key="left-search").set_value("layers.17. bias").run()
    assert not app.exception
    assert "6 found" in _html(app) and "layers.17.a.bias" in _html(app)
    app.text_area[0].set_value("\n".join(names)).run()
    assert any(box.label == "Every tensor (3,000)" for box in app.expander)
    assert len(app.dataframe[0].value) == 3000
    app.text_input(key="plan-search").set_value("layers.9.a").run()
    assert len(app.dataframe[0].value) == 2


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: None) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    monkeypatch.setenv("INSPECTOR_ROOT", str(folder))
    monkeypatch.setattr(own_code, "_headers", lambda: {"Host": "localhost:8501"})
    return folder


def _factory(app: AppTest) -> Any:
    return next(box for box in app.text_input if box.label == "Factory")


def test_own_code_runs_once_agreed_to_and_asks_again_when_it_changes(app: AppTest, own: Path, tmp_path: Path) -> None:
    shapes = {"a.weight": (3, 3), "a.bias": (3,), "b.weight": (2, 3), "b.bias": (2,)}
    _open(app, {f"module.{n}": torch.randn(s) for n, s in shapes.items()}, tmp_path, way="code")
    _factory(app).set_value("code:model.py:build").run()
    assert not app.exception
    assert "Run this file?" in _html(app) and _headings(app) == []
    app.button(key="code-run").click().run()
    assert not app.exception
    assert "Net.load_state_dict(strict=True) accepts all 4 tensors, in its own process" in _html(app)
    (own / "model.py").write_text(MODEL + "# changed")
    app.run()
    assert "Run this file?" in _html(app) and _headings(app) == []


def test_no_file_is_written_when_a_reference_answers_otherwise(app: AppTest, own: Path, tmp_path: Path) -> None:
    shapes = {"a.weight": (3, 3), "a.bias": (3,), "b.weight": (2, 3), "b.bias": (2,)}
    right = {n: torch.randn(s) for n, s in shapes.items()}
    hands = []
    for name, tensors in (("other.pth", {n: t + 1 for n, t in right.items()}), ("right.pth", right)):
        torch.save(tensors, tmp_path / name)
        stored = uploads.the_store().put_bytes((tmp_path / name).read_bytes(), name=name, owner="me")
        hands.append(Hand(sha256=stored.sha256, name=name))
    opened_before(app, hands)
    _open(app, {f"module.{n}": t for n, t in right.items()}, tmp_path, way="code")
    _factory(app).set_value("code:model.py:build").run()
    app.button(key="code-run").click().run()
    app.selectbox(key="reference").set_value(0).run()
    app.button(key="write").click().run()
    finish(app)
    assert not app.exception
    assert "Nothing was written" in app.error[-1].value and "reference" in app.error[-1].value
    assert not list(uploads.the_store().exports.rglob("*.safetensors"))
    app.selectbox(key="reference").set_value(1).run()
    app.button(key="write").click().run()
    finish(app)
    assert not app.exception and not app.error
    assert len(list(uploads.the_store().exports.rglob("*.safetensors"))) == 1


def test_groups_of_an_optimizer_are_asked_about(app: AppTest, tmp_path: Path) -> None:
    # A vector called weight and one called bias in every module, and biases in a group of their own.
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 3))
    biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
    others = [p for n, p in model.named_parameters() if not n.endswith("bias")]
    optimizer = torch.optim.Adam([{"params": biases}, {"params": others}])
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    state = {f"module.{n}": t for n, t in model.state_dict().items()}
    torch.save(model.state_dict(), tmp_path / "goal.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "goal.pth").read_bytes(), name="goal.pth", owner="me")
    remember(app, [Hand(sha256=stored.sha256, name="goal.pth")])
    _open(app, {"state_dict": state, "optimizer": optimizer.state_dict()}, tmp_path, way="file")
    app.checkbox(key="optimizer").check().run()
    assert "3 bias in group 1; 3 weight in group 2" in app.checkbox(key="optimizer-groups").label
    app.button(key="write").click().run()
    finish(app)
    assert "Nothing was written" in app.error[-1].value
    app.checkbox(key="optimizer-groups").check().run()
    app.button(key="write").click().run()
    finish(app)
    assert not app.exception and not app.error
    (made,) = uploads.the_store().exports.rglob("*.pth")
    assert torch.load(made, weights_only=True)["optimizer"]["param_groups"][0]["params"] == [0, 1, 2]


def test_averaged_weights_are_written_under_their_own_name_and_without_an_optimizer(
    app: AppTest, tmp_path: Path
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    state = {f"module.{n}": t for n, t in model.state_dict().items()}
    torch.save(model.state_dict(), tmp_path / "goal.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "goal.pth").read_bytes(), name="goal.pth", owner="me")
    remember(app, [Hand(sha256=stored.sha256, name="goal.pth")])
    averaged = {n: 2 * t for n, t in state.items()}
    held = {"model": state, "model_ema": averaged, "optimizer": optimizer.state_dict()}
    _open(app, held, tmp_path, way="file")
    meant = f"state-of/{app.session_state['hand'].sha256}"
    # The quiet twin: of the trained weights it can go along.
    app.session_state[meant] = ("model",)
    app.run()
    assert [box for box in app.checkbox if box.key == "optimizer"]
    assert any("4 tensors by the rules above" in one.value for one in app.caption)
    app.session_state[meant] = ("model_ema",)
    app.run()
    assert not app.exception and not app.error
    assert not [box for box in app.checkbox if box.key == "optimizer"]
    assert any("Without its optimizer" in one.value and "averaged" in one.value for one in app.caption)
    assert ">holds<" in _html(app)
    app.button(key="write").click().run()
    finish(app)
    assert not app.exception and not app.error
    lines = "\n".join(one.value for one in app.code)
    assert "own_model_ema_repaired.safetensors" in lines
    # The proofs of the written file are the same and more: they stand once.
    assert _html(app).count("bit for bit the file") == 1


def test_own_code_is_not_offered_to_others(app: AppTest, own: Path, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(own_code, "_headers", lambda: {"Host": "example.org"})
    _open(app, {"a": torch.ones(2)}, tmp_path)
    (ways,) = [group for group in app.get("button_group") if "a list of keys" in str(group.proto)]
    assert "your own code" not in str(ways.proto)
    assert not any(box.label == "Factory" for box in app.text_input)


@pytest.mark.parametrize("way", ["keys", "own"])
def test_of_half_a_file_nothing_is_tried_and_what_is_whole_can_be_saved(app: AppTest, tmp_path: Path, way: str) -> None:
    tensors = {f"module.{i}.weight": torch.rand(64, 64) for i in range(4)}
    file = tmp_path / "half.pth"
    torch.save({"state_dict": tensors}, file)
    stored = uploads.the_store().put_bytes(file.read_bytes()[:40_000], name="half.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="half.pth")
    app.session_state["target-way"] = "keys"
    app.run().switch_page("pages/repair.py").run()
    if way == "keys":
        app.text_area[0].set_value("\n".join(f"{i}.weight" for i in range(4))).run()
        assert "2 of 4 tensors are not whole in half" in app.error[0].value
        assert _headings(app) == ["Left over", "Rules"]
    else:  # Without a target, its wrappers alone.
        assert any("2 of 4 tensors are not whole in half" in box.value for box in app.warning)
    assert not app.exception
    (link,) = [one.proto for one in app.get("page_link") if one.proto.label == "Convert what can be read"]
    assert "salvage=1" in link.query_string and f"file={stored.sha256}" in link.query_string
    assert "Nothing missing" not in _html(app) and "Lossless." not in _html(app)
    assert not any("Write and verify" in button.label for button in app.button)
    assert "roof that failed" not in _html(app) + "".join(box.value for box in app.error)
    app.query_params["salvage"] = "1"
    app.switch_page("pages/convert.py").run()
    (box,) = [box for box in app.checkbox if box.label.endswith("does not hold whole")]
    assert box.label == "Leave out 2 tensors that the file does not hold whole" and box.value


@pytest.mark.parametrize("way", ["keys", "own"])
def test_of_half_a_file_what_is_whole_is_written_under_clean_names_and_called_a_part(
    app: AppTest, tmp_path: Path, way: str
) -> None:
    tensors = {f"module.{i}.weight": torch.rand(64, 64) for i in range(4)}
    file = tmp_path / "half.pth"
    torch.save({"state_dict": tensors}, file)
    stored = uploads.the_store().put_bytes(file.read_bytes()[:40_000], name="half.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="half.pth")
    app.session_state["target-way"] = "keys"
    app.run().switch_page("pages/repair.py").run()
    if way == "keys":
        app.text_area[0].set_value("\n".join(f"{i}.weight" for i in range(4))).run()
        assert "2 tensors that the file does not hold whole" in app.checkbox(key="partial").label
        app.checkbox(key="partial").check().run()
        assert "2 of 4 tensors are whole in the file and fit once" in _html(app)
        assert "2 keys staying at the model" in _html(app)
        app.button(key="write").click().run()
    else:
        app.checkbox(key="unwrap-salvage").check().run()
        app.button(key="unwrap-write").click().run()
    finish(app)
    assert not app.exception and not app.success
    assert ">holds for the part<" in _html(app) and ">holds<" not in _html(app)
    # A part is never said without what it lacks.
    assert any("A part of the model" in box.value and "weight" in box.value for box in app.warning)
    assert "half_partial.safetensors" in _html(app)
    (made,) = uploads.the_store().exports.rglob("*.safetensors")
    held = load_file(made)
    # torch writes a zip's storages in order: the first two are there.
    assert {name: tensor.shape for name, tensor in held.items()} == {f"{i}.weight": (64, 64) for i in range(2)}
    assert all(torch.equal(held[f"{i}.weight"], tensors[f"module.{i}.weight"]) for i in range(2))
    lines = "\n".join(box.value for box in app.code)
    assert "strict=False" in lines and "'2.weight'" in lines


def test_what_every_key_begins_with_is_offered_and_dropped_only_when_said(app: AppTest, tmp_path: Path) -> None:
    tensors = {f"net.{i}.weight": torch.rand(3, 5 + i) for i in range(3)}
    _open(app, tensors, tmp_path)
    (box,) = [one for one in app.radio if one.key.startswith("own-prefix")]
    assert 'Every key begins with "net."' in box.label.replace("\\", "") and box.value == ""
    assert not any("Write and verify" in button.label for button in app.button)
    box.set_value("net").run()
    assert any("dropped from 3 names" in one.value and "no target was given" in one.value for one in app.caption)
    app.button(key="unwrap-write").click().run()
    finish(app)
    assert not app.exception
    (made,) = uploads.the_store().exports.rglob("*.safetensors")
    held = load_file(made)
    assert set(held) == {f"{i}.weight" for i in range(3)}
    assert all(torch.equal(held[f"{i}.weight"], tensors[f"net.{i}.weight"]) for i in range(3))


def test_after_an_export_the_code_loads_what_was_downloaded(app: AppTest, tmp_path: Path, monkeypatch: Any) -> None:
    shapes = {"0.weight": (2, 3), "0.bias": (2,)}
    _open(app, {f"module.{n}": torch.ones(s) for n, s in shapes.items()}, tmp_path)
    app.text_area[0].set_value("\n".join(shapes)).run()
    assert [box.value for box in app.code if "load_file" in box.value] == []
    app.button(key="write").click().run()
    finish(app)
    assert not app.exception
    (lines,) = [box.value for box in app.code if "load_file" in box.value]
    assert "own_repaired.safetensors" in lines
    (made,) = uploads.the_store().exports.rglob("*.safetensors")
    (tmp_path / "own_repaired.safetensors").write_bytes(made.read_bytes())
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2))
    exec(lines, {"model": model})
    assert all(bool((tensor == 1).all()) for tensor in model.state_dict().values())


def _state_boxes(app: AppTest) -> list[Any]:
    return [box for box in app.selectbox if str(box.key).startswith("state-")]


def test_of_two_sets_of_weights_one_box_asks_and_the_address_has_the_answer(app: AppTest, tmp_path: Path) -> None:
    sets = {name: {"fc.weight": torch.full((2, 2), value), "fc.bias": torch.full((2,), value)} for name, value in PAIR}
    _open(app, sets, tmp_path)
    app.text_area[0].set_value("fc.weight\nfc.bias").run()
    (box,) = _state_boxes(app)
    assert "Which one?" in box.label.replace("\\", "") and box.value is None and not app.radio
    # Said once, and nothing of what the choice decides.
    assert "state" not in app.query_params and _headings(app) == []
    assert "Which one?" not in _html(app) and "Nothing missing" not in _html(app)
    box.set_value(1).run()
    assert not app.exception
    (box,) = _state_boxes(app)
    assert box.label == "State dict" and box.value == 1
    assert app.query_params["state"] == "model_ema" and "Verified" in _headings(app)
    assert "state['model_ema']" in app.code[-1].value
    # The likeliest is an answer, too, and is not asked about again.
    box.set_value(0).run()
    assert app.query_params["state"] == "model" and "Verified" in _headings(app) and len(_state_boxes(app)) == 1


def test_a_link_has_the_state_dict_and_one_that_names_none_is_no_harm(app: AppTest, tmp_path: Path) -> None:
    sets = {name: {"fc.weight": torch.full((2, 2), value), "fc.bias": torch.full((2,), value)} for name, value in PAIR}
    for query, chosen in (("model_ema", 1), ("nothing/of%2Fthe", 0)):
        fresh = AppTest.from_file(str(ROOT / "ui.py"), default_timeout=120)
        fresh.query_params["state"] = query
        _open(fresh, sets, tmp_path)
        fresh.switch_page("pages/weights.py").run()
        assert not fresh.exception
        assert fresh.selectbox[0].label == "State dict" and fresh.selectbox[0].value == chosen


def test_every_reason_for_a_place_has_words() -> None:
    assert set(lists._WHY) == set(Evidence)


def _links(app: AppTest) -> list[str]:
    return [link.proto.label for link in app.get("page_link")]


def test_of_two_networks_nothing_is_written_before_one_is_chosen(app: AppTest, tmp_path: Path) -> None:
    nets = {
        "netG": {f"module.g{n}.{leaf}": torch.ones(3) for n in range(3) for leaf in ("weight", "bias")},
        "netD": {f"module.d{n}.{leaf}": torch.ones(2) for n in range(3) for leaf in ("weight", "bias")},
    }
    _open(app, nets, tmp_path)
    assert not app.exception
    (box,) = _state_boxes(app)
    assert box.label == "Which of its 2 sets of weights is meant?" and box.value is None
    assert not any(button.key == "unwrap-write" for button in app.button)
    # A list of names that one of them has says which.
    app.text_area[0].set_value("\n".join(f"d{n}.{leaf}" for n in range(3) for leaf in ("weight", "bias"))).run()
    (box,) = _state_boxes(app)
    assert not app.exception and "Verified" in _headings(app)
    assert (box.label, box.options[box.value].partition(" ")[0]) == ("State dict", "netD")
    # One that neither has tells nothing.
    app.text_area[0].set_value("a.weight\nb.weight").run()
    (box,) = _state_boxes(app)
    assert not app.exception and box.value is None and "Verified" not in _headings(app)
    app.text_area[0].set_value("").run()
    _state_boxes(app)[0].set_value(1).run()
    assert not app.exception and app.query_params["state"] == "netD"
    assert any("Taken out of netD" in caption.value for caption in app.caption)
    assert any(button.key == "unwrap-write" for button in app.button)


@pytest.mark.parametrize("page", ["repair", "overview"])
def test_of_a_whole_module_of_ones_own_class_a_link_takes_the_weights_out(
    app: AppTest, tmp_path: Path, page: str
) -> None:
    torch.save(_Own(), tmp_path / "whole.pt")
    stored = uploads.the_store().put_bytes((tmp_path / "whole.pt").read_bytes(), name="whole.pt", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="whole.pt")
    app.run().switch_page(f"pages/{page}.py").run()
    assert not app.exception and not app.error
    # On Overview beside what tells to export the tensors, too.
    assert _links(app).count("Convert: the weights alone") == (1 if page == "repair" else 2)
    assert "Convert it as it is" not in _links(app)


class _Own(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
