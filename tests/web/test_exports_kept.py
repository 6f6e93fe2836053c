"""An export goes on while its visitor is elsewhere, and is there when the visitor comes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest

from inspector.errors import ExportError
from inspector.jobs.client import Running
from inspector.jobs.job import Job
from inspector.jobs.kinds import writing
from inspector.jobs.kinds.table import kind_named
from inspector.progress import Stopped
from inspector.web import jobs, uploads
from inspector.web.exports_kept import Kept, Underway, Written
from inspector.web.session import Hand
from inspector.web.store import ContentStore
from tests.web.finishing import finish


def _running() -> Running:
    return Running(Job(kind="trial", arguments=("sleep", 1.0)), kind_named("trial"), "me")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ContentStore]:
    monkeypatch.setenv("INSPECTOR_STORE", str(tmp_path / "store"))
    uploads.the_store.cache_clear()
    yield uploads.the_store()
    uploads.the_store.cache_clear()


def _underway(store: ContentStore, token: str = "a") -> Underway:
    folder = store.new_export(token)
    (folder / "converted.pth").write_bytes(b"whole")
    return Underway(running=_running(), folder=folder, stem="net")


def test_it_is_published_once_it_is_whole_and_belongs_to_one_visitor(store):
    kept, underway = Kept(), _underway(store)
    kept.begin("me", "slot", underway)
    assert kept.find("me", "slot") is underway and kept.is_underway("me", "slot")
    assert not list(store.exports.iterdir())
    underway.running.ended.set()
    assert not kept.is_underway("me", "slot")
    written = kept.find("me", "slot")
    assert isinstance(written, Written) and (written.folder / "converted.pth").read_bytes() == b"whole"
    assert written.folder.parent == store.exports
    assert kept.find("me", "slot") is written
    assert kept.find("you", "slot") is None and kept.find("me", "other") is None


@pytest.mark.parametrize("error", [ExportError("The disk is full."), None])
def test_what_failed_is_said_once_and_leaves_nothing(store, error):
    kept, underway = Kept(), _underway(store)
    kept.begin("me", "slot", underway)
    underway.running.error, underway.running.stopped = error, error is None
    underway.running.ended.set()
    kept.settle()
    assert not underway.folder.exists() and not list(store.exports.iterdir())
    with pytest.raises(ExportError if error else Stopped):
        kept.find("me", "slot")
    assert kept.find("me", "slot") is None


def test_files_that_nobody_came_back_for_go_with_the_others(store):
    kept, underway = Kept(), _underway(store)
    kept.begin("me", "slot", underway)
    underway.running.ended.set()
    kept.settle()
    (folder,) = store.exports.iterdir()
    assert not underway.folder.exists()
    (folder / "converted.pth").unlink()
    folder.rmdir()
    kept.settle()
    assert kept.find("me", "slot") is None


def test_the_oldest_of_too_many_is_given_up(store):
    kept, stops = Kept(most=2), []
    for n in range(3):
        underway = _underway(store, str(n))
        underway.running._stop = lambda n=n: stops.append(n)
        kept.begin("me", f"slot {n}", underway)
    assert stops == [0] and kept.find("me", "slot 0") is None
    assert sorted(p.name for p in (store.root / "unpublished").iterdir()) == ["1", "2"]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Writing begins when it is set."""
    real, event = writing.as_is, threading.Event()

    def held(*arguments):
        assert event.wait(60)
        return real(*arguments)

    monkeypatch.setattr(writing, "as_is", held)
    return event


def _convert_page(app: AppTest, tmp_path: Path) -> None:
    torch.save({"fc.weight": torch.ones(2, 3)}, tmp_path / "net.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "net.pth").read_bytes(), name="net.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="net.pth")
    app.run().switch_page("pages/convert.py").run()


def _exports() -> list[Running]:
    return [running for running in jobs.the_client().running() if running.job.kind == "as-is"]


def _links(app: AppTest) -> list[str]:
    return [button.proto.label for button in app.get("download_button")]


def test_leaving_the_page_does_not_end_the_export(app: AppTest, gate: threading.Event, tmp_path: Path) -> None:
    _convert_page(app, tmp_path)
    app.button(key="convert-write").click().run()
    assert not app.exception
    assert any("Writing and reading back" in bar.proto.text for bar in app.get("progress"))
    # A second click while it is being written begins nothing anew.
    app.button(key="convert-write").click().run()
    (running,) = _exports()
    app.switch_page("pages/overview.py").run()
    assert _exports() == [running]
    gate.set()
    assert running.wait(60)
    app.switch_page("pages/convert.py").run()
    assert not app.exception and not app.error
    assert [link.replace("\\", "") for link in _links(app)] == ["Download net_converted.safetensors"]
    (made,) = uploads.the_store().exports.rglob("*.safetensors")
    assert load_file(made)["fc.weight"].tolist() == [[1.0] * 3] * 2


def test_exports_with_other_choices_are_there_when_the_choice_is_back_at_its_default(
    app: AppTest, gate: threading.Event, tmp_path: Path
) -> None:
    _convert_page(app, tmp_path)
    (formats,) = [group for group in app.get("button_group") if group.key == "convert-writer"]
    formats.set_value("pth").run()
    app.button(key="convert-write").click().run()
    (running,) = _exports()
    app.switch_page("pages/overview.py").run().switch_page("pages/convert.py").run()
    assert any("Writing and reading back" in bar.proto.text for bar in app.get("progress"))
    gate.set()
    finish(app)
    assert running.wait(60) and not app.exception
    assert "With other choices:" in [caption.value for caption in app.caption]
    html = " ".join(element.proto.body for element in app.get("html"))
    assert "net_converted.pth" in html
    assert Kept().others("me", "a/", "a/b") == []


def test_a_stopped_export_says_so_and_can_be_begun_again(app: AppTest, gate: threading.Event, tmp_path: Path) -> None:
    _convert_page(app, tmp_path)
    app.button(key="convert-write").click().run()
    (running,) = _exports()
    (stop,) = [button for button in app.button if str(button.key).startswith("stop-")]
    stop.click().run()
    gate.set()
    finish(app)
    assert running.stopped
    assert "Stopped: nothing was written." in [box.value for box in app.info]
    assert not list(uploads.the_store().exports.rglob("*.safetensors"))
    app.button(key="convert-write").click().run()
    finish(app)
    assert not app.exception and _links(app)
