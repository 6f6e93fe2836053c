"""Addresses and hub ids on the pages: looked at by the header, fetched whole where numbers are needed, or refused."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.errors import NeedsWholeFile
from inspector.remote import lines
from inspector.web import own_code, remote_files, reports, uploads
from inspector.web.session import Hand
from inspector.web.store import ContentStore
from inspector.web.store_remote import refer_remote
from inspector.web.stored import is_digest, remote_id
from tests.hub_serving import COMMIT, publish
from tests.remote.test_hub import CONFIG, sharded, weights
from tests.serving import Server, serving
from tests.web.finishing import finish


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("INSPECTOR_ADDRESSES", "on")
    monkeypatch.setenv("INSPECTOR_PRIVATE_ADDRESSES", "on")
    remote_files._opened.clear()
    with serving() as told:
        monkeypatch.setenv("HF_ENDPOINT", told.base)
        told.files["/a.safetensors"] = weights(30)
        yield told


def _look(app: AppTest, where: str) -> AppTest:
    app.run()
    app.text_input(key="address-text").set_value(where)
    next(button for button in app.button if button.label == "Look").click()
    return app.run()


def _page(app: AppTest, name: str) -> AppTest:
    return app.switch_page(f"pages/{name}.py").run()


def _says(app: AppTest) -> str:
    shown = [*app.error, *app.warning, *app.info, *app.caption, *app.markdown]
    lines = [str(one.value) for one in shown] + [str(html.proto.body) for html in app.get("html")]
    return "\n".join(line for line in lines if not line.startswith("<style")).replace("\\", "")


def test_an_address_is_opened_by_its_header(app: AppTest, server: Server) -> None:
    _look(app, f"{server.base}/a.safetensors")
    assert not app.exception and not app.error
    hand = app.session_state["hand"]
    assert hand.is_elsewhere and hand.name == "a.safetensors"
    assert len(server.log) == 1 and server.sent < 300_000
    for page in ("overview", "contents", "tensors", "architecture", "repair"):
        _page(app, page)
        assert not app.exception
        assert "Only its header was read" in _says(app), page
    assert len(server.log) == 1, "no page asks the server again"
    assert "sha256" not in _says(_page(app, "overview"))
    assert "This takes the bytes of a.safetensors, of which only the header was read" in _says(_page(app, "weights"))


def test_fetched_whole_it_is_a_file_like_any_other(app: AppTest, server: Server) -> None:
    _look(app, f"{server.base}/a.safetensors")
    _page(app, "weights")
    app.button(key="fetch").click().run()
    finish(app)
    app.run()
    hand = app.session_state["hand"]
    data = server.files["/a.safetensors"]
    assert hand == Hand(sha256=hashlib.sha256(data).hexdigest(), name="a.safetensors")
    path = uploads.the_store().get_path(hand.sha256)
    assert path is not None and path.read_bytes() == data
    assert "Only its header" not in _says(_page(app, "overview"))
    assert list((uploads.the_store().root / "incoming").iterdir()) == []


def test_shards_are_fetched_into_one_file_that_opens(app: AppTest, server: Server) -> None:
    files = sharded(3)
    publish(server, "lab/large", files)
    _look(app, "lab/large")
    assert app.session_state["hand"].name == "lab/large"
    _page(app, "overview")
    app.button(key="fetch").click().run()
    finish(app)
    app.run()
    hand = app.session_state["hand"]
    assert not hand.is_elsewhere and hand.name == "lab/large"
    checkpoint = reports.open_anew(hand.sha256, hand.name)
    assert len(checkpoint.tensors) == 9
    assert {part.name for part in checkpoint.parts} >= set(files)
    assert dict(checkpoint.metadata)["config.json: model_type"] == "llama"


def test_one_file_of_the_hub_is_fetched_as_it_is(app: AppTest, server: Server) -> None:
    data = weights(3)
    publish(server, "lab/net", {"model.safetensors": data, "config.json": CONFIG})
    _look(app, "lab/net")
    assert "config.json" in _says(_page(app, "overview"))
    app.button(key="fetch").click().run()
    finish(app)
    app.run()
    assert app.session_state["hand"].sha256 == hashlib.sha256(data).hexdigest()


def test_several_are_listed_with_the_revisions_to_choose_from(app: AppTest, server: Server) -> None:
    publish(server, "lab/many", {"a.safetensors": weights(1), "b.safetensors": weights(2)}, revisions=("main", "v1"))
    _look(app, "lab/many")
    box = app.selectbox(key="hub-file")
    assert [option.partition(",")[0] for option in box.options] == ["a.safetensors", "b.safetensors"]
    assert app.selectbox(key="hub-revision").options == ["main", "v1"]
    box.set_value(1).run()
    app.button(key="hub-open").click().run()
    assert app.session_state["hand"].name == "lab/many/b.safetensors"
    assert server.paths()[-1] == f"/lab/many/resolve/{COMMIT}/b.safetensors"


def test_from_the_file_that_is_meant_the_others_of_its_repository_are_opened(app: AppTest, server: Server) -> None:
    publish(server, "lab/two", {"model.safetensors": weights(1), "training.safetensors": weights(2)})
    _look(app, "lab/two")
    assert app.session_state["hand"].name == "lab/two/model.safetensors"
    assert "Not opened: training.safetensors" in _says(_page(app, "overview"))
    app.button(key="hub-others").click().run()
    assert app.selectbox(key="hub-file"), "it leads to Open"
    box = _page(app, "open").selectbox(key="hub-file")  # where the test driver has to be led
    assert [option.partition(",")[0] for option in box.options] == ["model.safetensors", "training.safetensors"]
    box.set_value(1).run()
    app.button(key="hub-open").click().run()
    assert app.session_state["hand"].name == "lab/two/training.safetensors"
    assert server.paths()[-1] == f"/lab/two/resolve/{COMMIT}/training.safetensors"
    # One that was named by itself has nothing that was passed over.
    assert all(button.key != "hub-others" for button in _page(app, "overview").button)


def test_a_server_without_ranges_offers_the_whole_file(app: AppTest, server: Server) -> None:
    server.odd["/a.safetensors"] = lambda handler: handler.answer(200, server.files["/a.safetensors"])
    _look(app, f"{server.base}/a.safetensors")
    assert "does not send parts of a file" in _says(app)
    # The button is the way, and not a download by hand.
    assert '"Fetch the whole file", below' in _says(app) and "from disk" not in _says(app)
    app.button(key="fetch-whole").click().run()
    finish(app)
    app.run()
    assert app.session_state["hand"].sha256 == hashlib.sha256(server.files["/a.safetensors"]).hexdigest()


def test_what_changed_or_breaks_off_is_said_and_leaves_nothing(app: AppTest, server: Server) -> None:
    _look(app, f"{server.base}/a.safetensors")
    server.files["/a.safetensors"] = weights(31)
    _page(app, "overview")
    app.button(key="fetch").click().run()
    finish(app)
    assert app.session_state["hand"].is_elsewhere
    assert app.button(key="fetch")
    assert "is not the file any more that was looked at" in _says(app)
    assert list((uploads.the_store().root / "incoming").iterdir()) == []


def test_a_link_looks_again_and_says_when_it_is_another(app: AppTest, server: Server) -> None:
    _look(app, f"{server.base}/a.safetensors")
    hand = app.session_state["hand"]
    remote_files._opened.clear()
    assert len(reports.open_anew(hand.sha256, hand.name).tensors) == 30
    server.files["/a.safetensors"] = weights(29)
    remote_files._opened.clear()
    with pytest.raises(Exception, match="is not the file any more that was opened"):
        reports.open_anew(hand.sha256, hand.name)


def test_private_addresses_are_refused_where_the_operator_does_not_allow_them(
    app: AppTest, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("INSPECTOR_PRIVATE_ADDRESSES")
    _look(app, f"{server.base}/a.safetensors")
    assert "127.0.0.1 is no public address (loopback)" in _says(app)
    assert "the machine that this app runs on" in _says(app) and "INSPECTOR_PRIVATE_ADDRESSES=on" in _says(app)
    assert "drop the file above" in _says(app)
    _look(app, "http://localhost:8099/a.safetensors")
    assert "localhost is no public address (loopback): it is on the machine" in _says(app)
    monkeypatch.setenv("INSPECTOR_ROOT", str(tmp_path))
    _look(app, "http://[fd00::1]/a.safetensors")
    assert "(private): it is on the machine" in _says(app) and "by its path on this server, above" in _says(app)
    monkeypatch.delenv("INSPECTOR_ROOT")
    # Of other names nobody is told whether they stand for something in there.
    _look(app, "http://inside.invalid/a.safetensors")
    assert "No public address is known here" in _says(app) and "runs on" not in _says(app)
    assert server.log == []
    publish(server, "lab/net", {"model.safetensors": weights(3), "config.json": CONFIG})
    _look(app, "lab/net")  # the hub that the operator named is asked wherever it is
    assert app.session_state["hand"].name == "lab/net/model.safetensors"
    asked = len(server.log)
    app.switch_page("pages/open.py").run()
    _look(app, f"{server.base}/api/models/lab/net/refs")  # but no other page of it by an address
    assert "127.0.0.1 is no public address (loopback)" in _says(app)
    _look(app, "/etc/passwd")
    assert "names no repository of the hub" in _says(app)
    assert len(server.log) == asked


@pytest.mark.parametrize("private", ["", "on"])
def test_a_redirect_to_a_private_address_is_told_as_one(
    app: AppTest, server: Server, monkeypatch: pytest.MonkeyPatch, private: str
) -> None:
    """It said that the address is none that is asked, and named a setting that does not allow it."""
    monkeypatch.setenv("INSPECTOR_PRIVATE_ADDRESSES", private)
    connect = lines.connect
    monkeypatch.setattr(lines, "connect", lambda at, _, *more: connect(at, ("127.0.0.1",), *more))
    server.odd["/x.safetensors"] = lambda handler: handler.redirect(f"{server.base}/a.safetensors")
    _look(app, server.base.replace("127.0.0.1", "93.184.216.34") + "/x.safetensors")
    says = _says(app)
    assert "93.184.216.34, a public server, redirects to 127.0.0.1" in says
    assert "127.0.0.1 is no public address (loopback)" in says
    assert "INSPECTOR_PRIVATE_ADDRESSES" not in says and "allows that" not in says
    assert server.paths() == ["/x.safetensors"]


@pytest.mark.parametrize(
    ("stated", "host", "shown"),
    [("", "localhost:8501", True), ("", "example.org", False), ("off", "localhost:8501", False), ("on", "x.org", True)],
)
def test_whom_the_box_is_shown_to(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, stated: str, host: str, shown: bool
) -> None:
    monkeypatch.setenv("INSPECTOR_ADDRESSES", stated)
    monkeypatch.setattr(own_code, "_headers", lambda: {"Host": host})
    app.run()
    assert any(box.key == "address-text" for box in app.text_input) is shown


def test_what_is_elsewhere_is_in_the_store_without_bytes(tmp_path: Path) -> None:
    store = ContentStore(tmp_path, quota_nbytes=1000)
    ident = remote_id("ab" * 32)
    assert is_digest(ident) and ident[0] == "r" and len(ident) == 64
    refer_remote(store, ident, 10**12, remote="https://a.test/x", name="x", owner="me")
    store.put_bytes(b"y" * 900, name="y", owner="me")
    assert store.is_here(ident) and store.get_path(ident) is None and store.nbytes() == 900
    again = ContentStore(tmp_path, quota_nbytes=1000)
    found = again.find(ident)
    assert found is not None and found.remote == "https://a.test/x"
    again.forget(ident, "me")
    assert not again.is_here(ident)
    with pytest.raises(NeedsWholeFile):
        reports.file_of(Hand(sha256=ident, name="x"))


def test_a_torch_file_of_an_address_is_looked_into(app: AppTest, server: Server) -> None:
    buffer = io.BytesIO()
    torch.save({f"layers.{i}.weight": torch.full((50_000,), float(i)) for i in range(20)}, buffer)
    server.files["/a.pt"] = buffer.getvalue()
    _look(app, f"{server.base}/a.pt?key=secret")
    assert app.session_state["hand"].name == "a.pt"
    assert len(server.log) <= 4
    assert "secret" not in _says(_page(app, "contents"))
