"""What stands beside the drawing for a chosen box: the file's tensors, and the findings that were looked for."""

from __future__ import annotations

import io
import re

import torch
from streamlit.testing.v1 import AppTest
from torchvision import models

from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.finishing import finish
from tests.web.recents import opened_before

SPEC = "torchvision/squeezenet1_1?num_classes=3"


def architecture(app: AppTest, module: str) -> AppTest:
    """The Architecture page of a wrapped network with a NaN in features.3, that module's box chosen."""
    torch.manual_seed(0)
    weights = models.squeezenet1_1(weights=None, num_classes=3).state_dict()
    weights["features.3.squeeze.weight"][0, 0, 0, 0] = float("nan")
    raw = io.BytesIO()
    torch.save({f"module.{name}": value for name, value in weights.items()}, raw)
    stored = uploads.the_store().put_bytes(raw.getvalue(), name="net.pth", owner="me")
    hand = Hand(sha256=stored.sha256, name="net.pth")
    opened_before(app, [hand])
    key = f"drawing--{SPEC}-(3, 224, 224)-1"
    app.session_state["drawing-chosen"] = (key, module, module, module, "Fire", 1, ())
    app.run().switch_page("pages/architecture.py").run()
    assert not app.exception
    return app


def html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def tensors(app: AppTest) -> list[str]:
    return [str(name) for frame in app.dataframe if "Tensor" in frame.value for name in frame.value["Tensor"]]


def test_the_tensors_of_the_box_and_that_the_numbers_were_not_read(app: AppTest) -> None:
    architecture(app, "features.3")
    assert len(tensors(app)) == 6 and all(name.startswith("module.features.3.") for name in tensors(app))
    assert "<b>6 tensors in the file</b>" in html(app)
    assert "The numbers were not read yet." in html(app) and "NaN" not in html(app)


def test_after_reading_the_finding_stands_at_its_module_alone(app: AppTest) -> None:
    architecture(app, "features.3")
    app.switch_page("pages/weights.py").run()
    finish(app)
    app.switch_page("pages/architecture.py").run()
    assert "module.features.3.squeeze.weight holds 1 NaN" in html(app) and "not read yet" not in html(app)
    app.session_state["drawing-chosen"] = (
        app.session_state["drawing-chosen"][0],
        "features.4",
        "features.4",
        "",
        "",
        1,
        (),
    )
    app.run()
    assert len(tensors(app)) == 6 and "NaN" not in html(app)
    # What is said of every tensor of the file, its wrapper, is no news of this module.
    assert "about it alone: names, shapes and numbers were looked at" in html(app) and "Drop the segment" not in html(
        app
    )
    assert re.search(r"\d findings? about many tensors of the file may be about these too", html(app))


def test_a_box_without_tensors_says_so(app: AppTest) -> None:
    architecture(app, "features.2")
    assert "No tensor of the file belongs to it." in html(app) and not tensors(app)


def test_the_way_to_the_numbers_of_each(app: AppTest) -> None:
    architecture(app, "features.3")
    button = next(one for one in app.button if one.label == "Numbers of each tensor")
    button.click().run()
    assert not app.exception
    assert app.selectbox(key="tensor-module").value == "module.features.3"
