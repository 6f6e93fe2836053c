"""The Evaluation page without a browser: from the sample to the answer, stopped and gone on with, refused, compared."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from inspector.errors import RefusedContent
from inspector.evaluate.report import Evaluation
from inspector.jobs.client import Client
from inspector.jobs.kinds import evaluation as kind
from inspector.web import jobs, server_paths, uploads
from inspector.web.evaluation import data
from inspector.web.evaluation.data import Held
from inspector.web.session import Hand
from sample_models.labelled import write_labelled
from tests.web.finishing import finish
from tests.web.recents import opened_before

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"


def _html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def _store(data: bytes, name: str) -> str:
    return uploads.the_store().put_bytes(data, name=name, owner="me").sha256


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_labelled(tmp_path_factory.mktemp("labelled") / "shapes.zip", each=3).read_bytes()


@pytest.fixture
def ready(app: AppTest) -> AppTest:
    """The sample in hand, another one opened before it."""
    hands = [
        Hand(sha256=_store((SAMPLES / name).read_bytes(), name), name=name)
        for name in ("shapes.safetensors", "shapes_vit.safetensors")
    ]
    opened_before(app, hands)
    return app


def _button(app: AppTest, words: str):  # type: ignore[no-untyped-def]
    return next(button for button in app.button if words in button.label)


def test_which_pictures_stand_in_the_address_and_a_link_finds_them(
    ready: AppTest, labelled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, str] = {}
    monkeypatch.setattr(data, "write_address", lambda values, *, key: written.update(values))
    digest = _store(labelled, "shapes.zip")
    ready.query_params.update({"pictures": digest, "pictures-name": "mine.zip"})
    ready.run().switch_page("pages/evaluation.py").run()
    assert not ready.exception and not ready.error
    assert ready.session_state["evaluation-data"] == Held(name="mine.zip", sha256=digest)
    assert written == {"pictures": digest, "pictures-name": "mine.zip", "pictures-folder": ""}
    assert any("Evaluate · 12 pictures" in button.label for button in ready.button)


@pytest.mark.parametrize("query", [{"pictures": "0" * 64}, {"pictures": "../x"}, {"pictures-folder": "../../etc"}])
def test_a_link_to_pictures_that_are_gone_or_nobodys_says_so_and_leaves_the_address(
    ready: AppTest, monkeypatch: pytest.MonkeyPatch, query: dict[str, str]
) -> None:
    written: dict[str, str] = {}
    monkeypatch.setattr(data, "write_address", lambda values, *, key: written.update(values))
    ready.query_params.update(query)
    ready.run().switch_page("pages/evaluation.py").run()
    assert not ready.exception and len(ready.error) == 1
    assert written == dict.fromkeys(("pictures", "pictures-name", "pictures-folder"), "")
    assert "evaluation-data" not in ready.session_state
    ready.run()
    assert not ready.error


def test_from_the_pictures_to_the_answer_and_another_checkpoint(ready: AppTest, labelled: bytes) -> None:
    app = ready
    app.run().switch_page("pages/evaluation.py").run()
    assert not app.exception and not app.error
    assert any("appear here once pictures are chosen" in one.value for one in app.caption)
    app.session_state["evaluation-data"] = Held(name="shapes.zip", sha256=_store(labelled, "shapes.zip"))
    app.run()
    _button(app, "Evaluate · 12 pictures").click().run()
    finish(app)
    assert not app.exception and not app.error
    html = _html(app)
    assert "of 12 pictures" in html and "95 % interval" in html
    assert "in another order than the sorted folders: folder 2 is output 3" in html
    assert 'data-table="classes"' in html
    assert {one.label for one in app.get("download_button")} >= {"Pictures (CSV)", "Report (JSON)"}
    box = next(one for one in app.selectbox if one.label == "Compare with")
    box.select_index(0).run()
    finish(app)
    html = _html(app)
    assert not app.exception and not app.error
    assert "McNemar" in html and 'data-table="mcnemar"' in html and "shapes_vit.safetensors" in html


def _packed(names: tuple[str, ...]) -> bytes:
    data, picture = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(picture, "PNG")
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(f"{name}/a.png", picture.getvalue())
    return data.getvalue()


def test_folders_that_do_not_fit_are_refused_before_anything_runs(ready: AppTest) -> None:
    app = ready
    archive = _packed(("<b>cat", "dog", "star", "square"))
    app.session_state["evaluation-data"] = Held(name="a.zip", sha256=_store(archive, "a.zip"))
    app.run().switch_page("pages/evaluation.py").run()
    (error,) = app.error
    says = error.value.replace("\\", "")
    assert "4 class folders: <b>cat, dog, square, star" in says
    assert "4 outputs: circle, square, triangle, star" in says
    assert "\\<b\\>" in error.value
    assert not any("Evaluate" in button.label for button in app.button)


def test_an_archive_of_something_else_is_one_sentence(ready: AppTest) -> None:
    app = ready
    app.session_state["evaluation-data"] = Held(name="a.bin", sha256=_store(b"no archive", "a.bin"))
    app.run().switch_page("pages/evaluation.py").run()
    (error,) = app.error
    assert "neither a folder nor a zip or tar archive" in error.value.replace("\\", "")
    # What else could be chosen is there.
    assert any("labelled shapes" in button.label for button in app.button)


def test_what_was_stopped_says_that_it_goes_on(
    ready: AppTest, labelled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ready
    app.session_state["evaluation-data"] = Held(name="shapes.zip", sha256=_store(labelled, "shapes.zip"))
    app.run().switch_page("pages/evaluation.py").run()
    client: Client = jobs.the_client()
    forward, held = kind.evaluate_pictures, []

    def wait(*given, progress, **more):  # type: ignore[no-untyped-def]
        held.append(1)
        while len(held) == 1:
            progress(1, 12, "waiting")
        return forward(*given, progress=progress, **more)

    monkeypatch.setattr(kind, "evaluate_pictures", wait)
    _button(app, "Evaluate").click().run()
    _button(app, "Stop").click().run()
    for running in client.running():
        assert running.wait(30)
    app.run()
    assert "what was done is kept" in app.info[0].value
    _button(app, "Go on").click().run()
    finish(app)
    app.run()
    assert not app.exception and "of 12 pictures" in _html(app)


def test_scores_that_are_kept_serve_other_names(ready: AppTest, labelled: bytes) -> None:
    """The second evaluation reads what the first has kept; only the names are others."""
    from dataclasses import replace

    from inspector.cam.report import Preprocessing
    from inspector.evaluate import work
    from inspector.jobs.asked import DataFacts, DataRef
    from inspector.jobs.job import Job
    from inspector.jobs.subjects import FileRef, Naming

    store, client = uploads.the_store(), jobs.the_client()
    hand = ready.session_state["hand"]
    sha256 = _store(labelled, "shapes.zip")
    path, data_path = store.get_path(hand.sha256), store.get_path(sha256)
    assert path is not None and data_path is not None
    file = FileRef(sha256=hand.sha256, name=hand.name, path=path)
    data = DataRef(name="shapes.zip", sha256=sha256, path=data_path)
    steps = Preprocessing(
        resize=64, crop=(64, 64), mean=(0.5,) * 3, std=(0.25,) * 3, channels=3, interpolation="bilinear", source="",
        assumed=False,
    )  # fmt: skip

    def ask(job: Job):  # type: ignore[no-untyped-def]
        running = client.ask(job)
        assert running.wait(60)
        if running.error is not None:
            raise running.error
        return running.result

    facts: DataFacts = ask(Job(kind="archived-folders", arguments=(data,)))
    assert facts.classes == ("circle", "square", "star", "triangle")
    forwards: list[int] = []
    own = work.forward

    def counting(borrowed, batch):  # type: ignore[no-untyped-def]
        forwards.append(len(batch))
        return own(borrowed, batch)

    work.forward = counting
    try:
        naming = Naming(names=("circle", "square", "triangle", "star"))
        first: Evaluation = ask(Job(kind="evaluation", arguments=(file, facts.data, steps, naming)))
        assert sum(forwards) == 12
        other = replace(naming, names=("circle", "square", "star", "triangle"))
        second: Evaluation = ask(Job(kind="evaluation", arguments=(file, facts.data, steps, other)))
        assert sum(forwards) == 12
    finally:
        work.forward = own
    swapped = {0: 0, 1: 1, 2: 3, 3: 2}
    assert [swapped[row.label] for row in first.rows] == [row.label for row in second.rows]
    assert [row.path for row in first.rows] == [row.path for row in second.rows]


def test_folders_of_the_server_are_listed_and_nothing_outside_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "open"
    for place in ("shapes/val/star", "shapes/val/.hidden", "plain"):
        (root / place).mkdir(parents=True)
    (root / "shapes" / "all.tar.gz").write_bytes(b"x")
    (tmp_path / "secret" / "star").mkdir(parents=True)
    (root / "linked").symlink_to(tmp_path / "secret", target_is_directory=True)
    monkeypatch.setenv("INSPECTOR_ROOT", str(root))
    assert (server_paths.listing().sets, server_paths.listing().archives) == (
        ("shapes", "shapes/val"),
        ("shapes/all.tar.gz",),
    )
    assert server_paths.resolve_folder("shapes/val") == root / "shapes" / "val"
    for outside in ("../secret", "linked", "/etc", "a\0b"):
        with pytest.raises(RefusedContent, match="outside the folder"):
            server_paths.resolve_folder(outside)
    for gone in ("shapes/all.tar.gz", "none"):
        with pytest.raises(RefusedContent, match=f"There is no folder '{gone}'"):
            server_paths.resolve_folder(gone)
    monkeypatch.delenv("INSPECTOR_ROOT")
    assert server_paths.listing().sets == ()
    with pytest.raises(RefusedContent):
        server_paths.resolve_folder("shapes")
