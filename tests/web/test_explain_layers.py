"""Layers on the Explain page: each call of a shared module is one, and a layout that somebody gives stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from streamlit.testing.v1 import AppTest

from inspector.cam.inputs.picture import open_picture
from inspector.cam.inputs.preprocess import prepare, stated_preprocessing
from inspector.render.overlay import png_bytes
from inspector.web import uploads
from inspector.web.explain import looking
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def app(app: AppTest, tmp_path: Path) -> AppTest:
    torch.manual_seed(1)
    model = torchvision.models.resnet18(weights=None, num_classes=4)
    facts = {"preprocessing": {"size": 64, "mean": [0.5] * 3, "std": [0.25] * 3}, "problem_type": "regression"}
    torch.save({"state_dict": model.state_dict(), **facts}, tmp_path / "net.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "net.pth").read_bytes(), name="net.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="net.pth")
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    app.session_state["picture"] = Picture(name="noise.png", data=png_bytes(np.asarray(Image.fromarray(noise))))
    app.session_state["explain-part"] = "Can it be trusted?"  # the grid is drawn anew for each run
    return app


def _of(widgets: Any, label: str) -> Any:
    return next(w for w in widgets if w.label == label)


def _command(app: AppTest) -> str:
    return next(code.value for code in app.code if code.value.startswith("inspector explain"))


def test_both_calls_of_a_shared_module_can_be_chosen(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    for call in (0, 1):
        _of(app.text_input, "Another layer by its name").set_value(f"layer3.1.relu:{call}").run()
        assert not app.exception and not app.error
        assert _of(app.selectbox, "Layer").value == f"layer3.1.relu:{call}"
        assert f"--layer layer3.1.relu:{call} " in _command(app)
    names = [option.partition(" ")[0] for option in _of(app.selectbox, "Layer").options]
    assert len(names) == len(set(names))
    assert {"layer3.1.relu:0", "layer3.1.relu:1"} <= set(names)
    _of(app.selectbox, "Layer").set_value("layer3.1.relu:0").run()
    assert "--layer layer3.1.relu:0 " in _command(app)


def test_a_layout_given_on_the_page_is_in_the_command(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    layer = _of(app.selectbox, "Layer").value
    assert "=N" not in _command(app)
    _of(app.selectbox, "Output is").set_value("NHWC").run()
    assert not app.exception and not app.error
    assert f"--layer {layer}:0=NHWC" in _command(app)
    # Named with a layout, it is the same layer read otherwise, and no second one.
    _of(app.text_input, "Another layer by its name").set_value("layer3=NHWC").run()
    assert not app.exception and not app.error
    options = [option.partition(" ")[0] for option in _of(app.selectbox, "Layer").options]
    assert options.count("layer3") == 1
    assert "--layer layer3:0=NHWC" in _command(app)


def test_what_the_file_says_of_its_answer_is_where_the_page_begins(app: AppTest) -> None:
    app.run().switch_page("pages/explain.py").run()
    assert _of(app.selectbox, "The answer is").value == "numbers"
    assert not any("%" in option for option in _of(app.selectbox, "Class").options)
    assert "--answer numbers" in _command(app)
    _of(app.selectbox, "The answer is").set_value("several").run()
    assert not app.exception and not app.error
    assert all("%" in option for option in _of(app.selectbox, "Class").options)
    assert "--answer several" in _command(app)


def test_layers_are_of_the_pictures_own_proportions_where_nothing_crops(app: AppTest) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    picture = Picture(name="wide.png", data=png_bytes(noise))
    kept = stated_preprocessing({"mean": [0.5] * 3, "std": [0.5] * 3, "resize": 40}, "")
    for steps in (kept, replace(kept, crop=(32, 32)), replace(kept, resize=None)):
        batch, _ = prepare(open_picture(picture.data), steps)
        assert looking.input_shape(picture, steps) == tuple(batch.shape[1:])
    assert looking.input_shape(picture, kept) == (3, 40, 60)
