"""The Explain page: how often the model runs, what is drawn, and what is said to be assumed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest
from torch.nn.modules.module import register_module_forward_pre_hook

from inspector.architectures.build import build_model
from inspector.cam.inputs.picture import open_picture
from inspector.render.overlay import overlay
from inspector.web import reports, uploads
from inspector.web.explain import answer, controls, inputs, looking
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import Picture, for_display
from inspector.web.session import Hand

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_models" / "files" / "shapes_dp.pth.tar"


def _picture(width: int, height: int) -> Picture:
    noise = np.random.default_rng(0).integers(0, 255, (height // 50, width // 50, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((width, height)).save(buffer, format="PNG", compress_level=1)
    return Picture(name="noise.png", data=buffer.getvalue())


@pytest.fixture
def app(app: AppTest) -> AppTest:
    if not SAMPLE.is_file():
        pytest.fail("The sample files are missing: python sample_models/build.py derive")
    # Under another name: of the project's own samples the classes are known.
    stored = uploads.the_store().put_bytes(SAMPLE.read_bytes(), name="net.pth.tar", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="net.pth.tar")
    app.session_state["picture"] = _picture(600, 300)
    return app


@pytest.fixture
def forwards(app: AppTest) -> Iterator[list[int]]:
    """One entry for each forward pass of the file's own model, of a copy of it with values, too."""
    hand = app.session_state["hand"]
    best = reports.recognition_of(hand).best
    assert best is not None
    kind = type(build_model(best.spec, device="meta"))
    passed: list[int] = []

    def count(module: Any, args: Any) -> None:
        if type(module) is kind and not args[0].is_meta:
            passed.append(len(args[0]))

    handle = register_module_forward_pre_hook(count)
    yield passed
    handle.remove()


def test_everything_arithmetic_comes_from_one_forward_pass(app: AppTest, forwards: list[int]) -> None:
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    assert forwards == [1]
    _of(app, "Layer").set_value("stage2").run()
    _of(app, "Method").set_value("finer-cam")
    _of(app, "Opacity", app.slider).set_value(0.9)
    _of(app, "Outline at", app.slider).set_value(0.5)
    _of(app, "Colours").set_value("jet").run()
    _of(app, "Class").set_value(1).run()
    _of(app, "Compare with").set_value(0)
    _of(app, "More", app.get("button_group")).set_value("Channels").run()
    assert not app.exception and not app.error
    assert forwards == [1]


def test_another_class_does_not_bring_back_what_was_compared_before(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    _of(app, "Class").set_value(1).run()
    _of(app, "Compare with").set_value(0).run()
    _of(app, "Class").set_value(2).run()
    assert _of(app, "Compare with").value == 0
    # What the class itself becomes is nothing to compare it with, and does not come back with the next class.
    _of(app, "Class").set_value(0).run()
    assert _of(app, "Compare with").value is None
    _of(app, "Class").set_value(1).run()
    assert _of(app, "Compare with").value is None


def test_aligned_cells_are_a_toggle_and_stand_in_the_command(app: AppTest) -> None:
    def command() -> str:
        return next(code.value for code in app.code if code.value.startswith("inspector explain"))

    app.run().switch_page("pages/explain.py").run()
    assert "--aligned" not in command()
    _of(app, "Aligned cells", app.toggle).set_value(True).run()
    assert not app.exception
    assert "--aligned" in command()


def test_layers_are_not_fused_for_a_method_that_looks_at_none(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    _of(app, "Layers together").set_value("mean")
    _of(app, "Method").set_value("saliency")
    _of(app, "More", app.get("button_group")).set_value("Several pictures").run()
    assert not app.exception
    # As the command says it.
    (error,) = app.error
    assert error.value.replace("\\", "") == "Gradient saliency looks at no layer, so there is nothing to fuse."


def _of(app: AppTest, label: str, among: Any = None) -> Any:
    return next(w for w in (among if among is not None else app.selectbox) if w.label == label)


def test_what_nobody_stated_is_said_beside_the_heat_map(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception
    labels = " ".join(block.proto.popover.label.replace("\\", "") for block in app.get("popover"))
    assert "(assumed, as published with" in labels
    assert "nobody names them" in labels
    assert any("is not stated anywhere" in one.value for one in app.caption)


def test_a_camera_picture_is_drawn_at_the_size_of_a_screen_with_the_heat_at_its_place(app: AppTest) -> None:
    app.session_state["picture"] = _picture(3000, 1500)
    app.run().switch_page("pages/explain.py").run()
    picture = app.session_state["picture"]
    hand = app.session_state["hand"]
    preprocessing = inputs.inferred(hand)
    layers = controls.layers_of(hand, preprocessing)
    subject = Subject(hand=hand, picture=picture, preprocessing=preprocessing, layers=layers)
    spec = looking.spec_of(subject, "grad-cam", layers[0])
    explanation = looking.explained(subject, spec, 2, answer.Naming())
    small, scaled = for_display(picture, explanation)
    assert small.size == (1400, 700)
    whole = overlay(open_picture(picture.data), explanation, opacity=1.0, dim_outside=1.0)
    drawn = overlay(small, scaled, opacity=1.0, dim_outside=1.0)
    # The same picture: the whole one, made small afterwards, differs only at the crop's edges.
    reduced = np.asarray(Image.fromarray(whole).resize((1400, 700), Image.Resampling.BILINEAR))
    assert np.abs(reduced.astype(int) - drawn.astype(int)).mean() < 0.5
