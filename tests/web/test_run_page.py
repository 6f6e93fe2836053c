"""The Run page without a browser: the answer first, the choice in the address, a folder of the server, bad input."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.run.choice import Held
from inspector.web.run.view import shared_folder
from inspector.web.shelf import Shelf
from tests.run.made import save_all, states
from tests.web.finishing import finish


def _packed(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"run/{name}", content)
    return data.getvalue()


def _saved(**content: Any) -> bytes:
    data = io.BytesIO()
    torch.save(content, data)
    return data.getvalue()


def _store(data: bytes, name: str) -> str:
    return uploads.the_store().put_bytes(data, name=name, owner="me").sha256


def _opened(app: AppTest, **address: str) -> AppTest:
    app.run()
    for name, value in address.items():
        app.query_params[name.replace("_", "-")] = value
    app.switch_page("pages/run.py").run()
    finish(app)
    return app


def _html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


@pytest.fixture(scope="module")
def archive() -> bytes:
    """Four epochs; a NaN from the third on, one file that breaks off, one of something else."""
    of = states(4)
    of[2]["fc.weight"][0, 0] = math.nan
    of[3]["fc.weight"][0, 0] = math.nan
    files = {f"epoch_{n}.pth": _saved(state_dict=s, epoch=n, loss=1 / n) for n, s in enumerate(of, start=1)}
    files["epoch_5.pth"] = files["epoch_1.pth"][:700]
    files["<b>other.pth"] = _saved(weight=torch.ones(3, 3), bias=torch.ones(3))
    return _packed(files)


def test_an_empty_page_says_what_it_will_show_and_offers_the_sample_and_the_files_of_the_other_page(
    app: AppTest, archive: bytes
) -> None:
    app.session_state["shelf"] = Shelf(sha256=_store(archive, "mine.zip"), name="mine.zip")
    page = _opened(app)
    assert not page.exception and not page.error
    assert any("which layers moved when" in one.value for one in page.markdown)
    labels = [button.label for button in page.button]
    assert "Try “Training run”" in labels
    next(button for button in page.button if "mine" in button.label).click().run()
    finish(page)
    assert "4 checkpoints of 7 tensors" in _html(page)


def test_the_sample_on_the_open_page_leads_here_and_has_something_to_tell(app: AppTest) -> None:
    app.run()
    app.button(key="sample-training-run").click().run()
    finish(app)
    assert not app.exception and not app.error
    html = _html(app)
    assert "<h1>Run</h1>" in html and "7 checkpoints of 17 tensors" in html
    assert 'data-finding="run-left-out"' in html and 'data-finding="run-late"' in html
    assert {m.value.split(" ")[0] for m in app.markdown if ":small[" in m.value} == {
        "**loss**", "**train\\/loss**", "**accuracy**", "**optimizer\\.param\\_groups\\.0\\.lr**",
    }  # fmt: skip


def test_the_answer_what_was_left_out_and_what_the_address_chooses(app: AppTest, archive: bytes) -> None:
    digest = _store(archive, "mine.zip")
    page = _opened(app, run=digest, run_name="mine.zip", run_show="RMS", run_by="tensor", run_tensor="bn.bias")
    assert not page.exception and not page.error
    html = _html(page)
    assert "NaN or infinity is first in run/epoch_3.pth: it began in fc.weight" in html
    assert 'data-finding="run-not-finite"' in html and 'data-table="left-out"' in html
    assert "could not be read" in html and "belongs to something else" in html
    # A name from an archive is no markup.
    assert "<b>other" not in html and "&lt;b&gt;other.pth" in html
    assert any("Root mean square" in one.value for one in page.caption)
    assert next(box for box in page.selectbox if box.label == "Tensor").value == "bn.bias"
    assert {one.label for one in page.get("download_button")} == {
        "Checkpoints (CSV)", "Series by tensor (CSV)", "Report (JSON)",
    }  # fmt: skip
    page.button(key="run-other").click().run()
    assert "run" not in page.query_params and "4 checkpoints" not in _html(page)


def test_what_has_gone_and_what_is_no_run_is_one_sentence(app: AppTest) -> None:
    page = _opened(app, run="0" * 64, run_name="gone.zip")
    (error,) = page.error
    assert "is not on the server any more" in error.value.replace("\\", "")
    alone = _saved(state_dict=states(1)[0], epoch=1)
    page.session_state["run-held"] = Held(name="one.pth", sha256=_store(alone, "one.pth"))
    page.run()
    finish(page)
    assert not page.exception and "No run: one.pth has nothing beside it" in _html(page)
    page.button(key="run-other").click().run()
    page.session_state["run-held"] = Held(name="notes.zip", sha256=_store(_packed({"a.txt": b"words"}), "notes.zip"))
    page.run()
    finish(page)
    (error,) = page.error
    assert "is a checkpoint" in error.value.replace("\\", "") and not page.exception


def test_a_folder_of_the_server_is_read_anew_when_it_grew(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "open"
    (root / "training").mkdir(parents=True)
    of = states(4)
    save_all(root / "training", of[:3])
    monkeypatch.setenv("INSPECTOR_ROOT", str(root))
    page = _opened(app, run_folder="training/")
    assert not page.exception and "3 checkpoints of 7 tensors" in _html(page)
    save_all(root / "training", of)
    page.run()
    finish(page)
    assert "4 checkpoints of 7 tensors" in _html(page)
    page.query_params["run-folder"] = "../secret"
    page.run()
    (error,) = page.error
    assert "outside the folder" in error.value.replace("\\", "")


def test_the_folder_that_all_lie_in() -> None:
    assert shared_folder(["run/a.pth", "run/b.pth"]) == "run/"
    assert shared_folder(["a/b/1.pth", "a/c/1.pth"]) == "a/"
    assert shared_folder(["run1/a.pth", "run2/a.pth"]) == "" and shared_folder(["a", "b"]) == ""
