"""The Explain page: how often the model runs, what is drawn, and what is said to be assumed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest

from inspector.cam import explain as explain_module
from inspector.cam.explain import explain
from inspector.render.overlay import overlay
from inspector.web import explaining, uploads
from inspector.web.explaining import Picture, for_display
from inspector.web.session import Hand

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_models" / "files" / "shapes_dp.pth.tar"


def _picture(width: int, height: int) -> Picture:
    noise = np.random.default_rng(0).integers(0, 255, (height // 50, width // 50, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((width, height)).save(buffer, format="PNG")
    return Picture(name="noise.png", data=buffer.getvalue())


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    if not SAMPLE.is_file():
        pytest.fail("The sample files are missing: python sample_models/build.py derive")
    monkeypatch.setenv("INSPECTOR_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(uploads, "_mounted", False)
    monkeypatch.setattr(
        script_runner,
        "_mpa_v1",
        lambda path: exec(compile(Path(path).read_text(), path, "exec"), {"__name__": "__main__", "__file__": path}),
    )
    uploads.the_store.cache_clear()
    app = AppTest.from_file(str(ROOT / "ui.py"), default_timeout=120)
    stored = uploads.the_store().put_bytes(SAMPLE.read_bytes(), name=SAMPLE.name, owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name=SAMPLE.name)
    app.session_state["picture"] = _picture(3000, 1500)
    yield app
    uploads.the_store.cache_clear()


def test_the_first_heat_map_costs_one_run_of_the_model_and_each_change_one_more(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, Any]] = []

    def counting(*args: Any, **options: Any) -> Any:
        calls.append((options["layer"], options["target"]))
        return explain(*args, **options)

    monkeypatch.setattr(explain_module, "explain", counting)
    explaining._explained.clear()
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    assert calls == [("conv5", None)]
    _of(app, "Layer").set_value("stage2").run()
    assert calls[1:] == [("stage2", None)]
    _of(app, "Opacity", app.slider).set_value(0.9).run()
    assert len(calls) == 2


def _of(app: AppTest, label: str, among: Any = None) -> Any:
    return next(w for w in (among if among is not None else app.selectbox) if w.label == label)


def test_what_nobody_stated_is_said_beside_the_heat_map(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception
    (info,) = app.info
    says = info.value.replace("\\", "")
    assert "is not stated anywhere; assumed: as published with" in says
    assert "names no classes" in says


def test_a_camera_picture_is_drawn_at_the_size_of_a_screen_with_the_heat_at_its_place(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    picture = app.session_state["picture"]
    hand = app.session_state["hand"]
    preprocessing = explaining.inferred(hand)
    explanation = explaining.explained(hand, picture, preprocessing, layer="conv5", target=None, method="grad-cam")
    small, scaled = for_display(picture, explanation)
    assert small.size == (1400, 700)
    whole = overlay(explaining.decoded(picture), explanation, opacity=1.0, dim_outside=1.0)
    drawn = overlay(small, scaled, opacity=1.0, dim_outside=1.0)
    # The same picture: the whole one, made small afterwards, differs only at the crop's edges.
    reduced = np.asarray(Image.fromarray(whole).resize((1400, 700), Image.Resampling.BILINEAR))
    assert np.abs(reduced.astype(int) - drawn.astype(int)).mean() < 0.5
