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
    assert "(assumed)" in labels
    assert "nobody names them" in labels
    captions = [one.value.replace("\\", "") for one in app.caption]
    assert any("is not stated anywhere; assumed: as published with" in one for one in captions)


def test_what_is_chosen_is_kept_when_the_page_is_left(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    _of(app, "Method").set_value("layer-cam").run()
    _of(app, "Layer").set_value("stage2").run()
    _of(app, "Colours").set_value("magma")
    _of(app, "Opacity", app.slider).set_value(0.4)
    _of(app, "Aligned cells", app.toggle).set_value(True)
    _of(app, "Centre crop (0: none)", app.number_input).set_value(160).run()
    app.switch_page("pages/contents.py").run()
    app.switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    assert (_of(app, "Method").value, _of(app, "Layer").value) == ("layer-cam", "stage2")
    assert (_of(app, "Colours").value, _of(app, "Opacity", app.slider).value) == ("magma", 0.4)
    assert _of(app, "Aligned cells", app.toggle).value is True
    assert _of(app, "Centre crop (0: none)", app.number_input).value == 160


def test_an_address_restores_picture_class_method_layer_and_view(app: AppTest) -> None:
    del app.session_state["picture"]
    says = {"picture": "star_1", "class": "2", "beside": "0", "method": "layer-cam", "layer": "stage2"}
    look = {"view": "For and against", "colours": "magma", "opacity": "0.4", "outline": "0.5"}
    for name, value in (says | look).items():
        app.query_params[name] = value
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    assert app.session_state["picture"].name == "star_1.png"
    assert [_of(app, one).value for one in ("Class", "Compare with", "Method", "Layer")] == [
        2,
        0,
        "layer-cam",
        "stage2",
    ]
    assert not any("The link asks for" in one.value for one in app.caption)
    assert app.session_state["view"] == "For and against" and _of(app, "Colours").value == "magma"
    assert [_of(app, one, app.slider).value for one in ("Opacity", "Outline at")] == [0.4, 0.5]


def test_an_address_that_means_nothing_changes_nothing(app: AppTest) -> None:
    says = {"class": "99", "method": "magic", "layer": "fc", "view": "X", "colours": "red", "opacity": "nan"}
    for name, value in ({"picture": "star_1", "outline": "1e9"} | says).items():
        app.query_params[name] = value
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    assert (_of(app, "Method").value, _of(app, "Layer").value) == ("grad-cam", "conv5")
    assert (_of(app, "Colours").value, _of(app, "Opacity", app.slider).value) == ("viridis", 0.7)
    assert _of(app, "Outline at", app.slider).value == 0
    # It is said until another is chosen there.
    said = [one.value.replace("\\", "") for one in app.caption if "The link asks for" in one.value]
    assert len(said) == 7
    assert any("asks for “magic”, which is none of these: this is Grad-CAM." in text for text in said)
    assert any("“99”" in text for text in said) and any("“fc”" in text for text in said)
    assert any("asks for “X”, which is none of these: this is Overlay." in text for text in said)
    assert any("asks for “red”, which is none of these: this is viridis." in text for text in said)
    assert any("asks for “nan”, which is no step of this slider: this is 0.7." in text for text in said)
    assert any("asks for “1e9”, which is no step of this slider: this is 0." in text for text in said)
    _of(app, "Method").set_value("layer-cam").run()
    _of(app, "Colours").set_value("magma").run()
    _of(app, "Opacity", app.slider).set_value(0.5).run()
    said = [one.value for one in app.caption if "The link asks for" in one.value]
    assert len(said) == 4 and not any(gone in text for gone in ("“magic”", "“red”", "“nan”") for text in said)


@pytest.mark.parametrize(
    ("name", "text", "instead"),
    [("opacity", "0.52", "0.7"), ("opacity", "1.05", "0.7"), ("outline", "1", "0"), ("outline", "0.97", "0")],
)
def test_a_step_that_the_slider_has_not_is_told(app: AppTest, name: str, text: str, instead: str) -> None:
    del app.session_state["picture"]
    app.query_params["picture"], app.query_params[name] = "star_1", text
    app.run().switch_page("pages/explain.py").run()
    (said,) = [one.value.replace("\\", "") for one in app.caption if "The link asks for" in one.value]
    assert f"“{text}”" in said and said.endswith(f"this is {instead}.")


def test_an_upload_is_found_by_its_digest_as_long_as_the_store_has_it(app: AppTest) -> None:
    picture = app.session_state["picture"]
    del app.session_state["picture"]
    uploads.the_store().put_bytes(picture.data, name="cat.png", owner="somebody else")
    app.query_params["picture"], app.query_params["picture-name"] = picture.sha256, "../cat.png"
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    assert (app.session_state["picture"].data, app.session_state["picture"].name) == (picture.data, "cat.png")


@pytest.mark.parametrize("named", ["0" * 64, "../../etc/passwd", "the checkpoint"])
def test_a_picture_that_is_not_here_is_asked_for_again(app: AppTest, named: str) -> None:
    del app.session_state["picture"]
    # A digest of something that is no picture is refused as well.
    app.query_params["picture"] = app.session_state["hand"].sha256 if named == "the checkpoint" else named
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception
    (error,) = app.error
    says = "not a picture that can be read" if named == "the checkpoint" else "not on the server any more"
    assert says in error.value.replace("\\", "")
    assert any(str(button.key) == "picture-star_1" for button in app.button)


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
