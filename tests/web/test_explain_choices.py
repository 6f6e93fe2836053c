"""Nothing on the Explain page names what was chosen before, and class names that are guessed are said to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from streamlit.testing.v1 import AppTest

from inspector.render.overlay import png_bytes
from inspector.web import uploads
from inspector.web.explain import address
from inspector.web.explain.pictures import Picture
from inspector.web.session import Hand

STEPS = {"preprocessing": {"size": 32, "mean": [0.5] * 3, "std": [0.25] * 3}}


def _app(app: AppTest, tmp_path: Path, count: int, **facts: object) -> AppTest:
    torch.manual_seed(1)
    model = torchvision.models.get_model("mobilenet_v3_small", weights=None, num_classes=count).eval()
    torch.nn.init.normal_(model.classifier[3].weight)
    torch.save({"state_dict": model.state_dict(), **STEPS, **facts}, tmp_path / "net.pth")
    stored = uploads.the_store().put_bytes((tmp_path / "net.pth").read_bytes(), name="net.pth", owner="me")
    app.session_state["hand"] = Hand(sha256=stored.sha256, name="net.pth")
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    app.session_state["picture"] = Picture(name="circle_1.png", data=png_bytes(noise))
    app.session_state["explain-part"] = "Can it be trusted?"  # the grid is drawn anew for each run
    app.run().switch_page("pages/explain.py").run()
    assert not app.exception and not app.error
    return app


def _of(widgets: Any, label: str) -> Any:
    return next(w for w in widgets if w.label == label)


def _settled(app: AppTest, word: str) -> str:
    """What the line of settled things says of one of them, without the word that opens it."""
    labels = [block.proto.popover.label.replace("\\", "") for block in app.get("popover")]
    (label,) = [label for label in labels if word in label]
    return label.removesuffix(" :primary[change]")


def _caption(app: AppTest) -> str:
    captions = [one.caption for image in app.get("image") + app.get("imgs") for one in image.proto.imgs]
    return next(caption for caption in captions if "looked for" in caption)


def test_a_chosen_class_stays_when_its_words_change(app: AppTest, tmp_path: Path) -> None:
    app = _app(app, tmp_path, 4, classes=["a", "b", "c", "d"])
    box = _of(app.selectbox, "Class")
    last = len(box.options) - 1
    chosen = box.options[last].partition(" ")[0]
    box.select_index(last).run()
    assert _caption(app).endswith(f"looked for {chosen}")
    for reading in ("numbers", "several", "one"):
        _of(app.selectbox, "The answer is").set_value(reading).run()
        box = _of(app.selectbox, "Class")
        shown = next(option for option in box.options if option.startswith(f"{chosen} "))
        assert box.value == "abcd".index(chosen) and ("%" in shown) == (reading != "numbers")
        assert _caption(app).endswith(f"looked for {chosen}")
    _of(app.text_area, "Names, one per line").set_value("e\nf\ng\nh").run()
    assert _of(app.selectbox, "Class").value == "abcd".index(chosen)
    assert _caption(app).endswith(f"looked for {'efgh'['abcd'.index(chosen)]}")


def test_what_is_folded_names_what_is_chosen_now(app: AppTest, tmp_path: Path) -> None:
    app = _app(app, tmp_path, 4, classes=["a", "b", "c", "d"])
    assert _settled(app, "lasses") == "classes: stated in the file"
    _of(app.text_area, "Names, one per line").set_value("e\nf\ng\nh").run()
    assert _settled(app, "lasses") == "classes: set on this page"
    assert any("channels first" in one.value for one in app.caption)
    _of(app.selectbox, "Output is").set_value("NHWC").run()
    assert any("channels last" in one.value for one in app.caption)
    assert _settled(app, " px") == "32 px, mean 0.5 (stated in the file)"
    _of(app.text_input, "Mean per channel").set_value("0.1, 0.1, 0.1").run()
    assert _settled(app, " px") == "32 px, mean 0.1 (set on this page)"


def test_a_picture_of_ones_own_with_a_samples_name_is_no_sample(app: AppTest, tmp_path: Path) -> None:
    app = _app(app, tmp_path, 4)
    samples = [button for button in app.button if str(button.key).startswith("picture-")]
    if not samples:
        pytest.fail("The sample pictures are missing: python sample_models/build.py derive")
    assert not any(button.proto.type == "primary" for button in samples)
    next(b for b in samples if b.key == "picture-circle_1").click().run()
    (chosen,) = [b.key for b in app.button if str(b.key).startswith("picture-") and b.proto.type == "primary"]
    assert chosen == "picture-circle_1"


def test_a_well_known_list_is_offered_and_never_assumed(app: AppTest, tmp_path: Path) -> None:
    app = _app(app, tmp_path, 10)
    assert all(option.startswith("class ") for option in _of(app.selectbox, "Class").options)
    assert _settled(app, "lasses") == "classes: nobody names them"
    assert any("as many as CIFAR-10 has: perhaps those" in c.value for c in app.caption)
    _of(app.button, "Use CIFAR-10's names").click().run()
    assert not app.exception and not app.error
    named = {option.partition(" · ")[0] for option in _of(app.selectbox, "Class").options}
    assert {"airplane", "automobile", "truck"} < named
    assert _settled(app, "lasses") == "classes: CIFAR-10 (suggested)"
    assert not any(b.label.startswith("Use CIFAR") for b in app.button)


def test_no_list_is_offered_where_none_fits_or_the_file_names_its_classes(app: AppTest, tmp_path: Path) -> None:
    app = _app(app, tmp_path, 10, classes=list("abcdefghij"))
    assert not any(b.label.startswith("Use ") for b in app.button)


def test_no_list_is_offered_for_another_number_of_classes(app: AppTest, tmp_path: Path) -> None:
    app = _app(app, tmp_path, 4)
    assert not any(b.label.startswith("Use ") for b in app.button)


def test_trust_over_several_pictures_is_priced_measured_and_says_which_cannot_be_read(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.cam.trust import pictures as trusted
    from inspector.cam.trust.cost import Plan
    from inspector.render.panels import PicturesPanel
    from inspector.web import jobs
    from inspector.web.explain import several

    few = Plan(measures=trusted.PLAN.measures[:1], randomise=False, compare=False)
    monkeypatch.setattr(
        trusted.assess_pictures, "__kwdefaults__", trusted.assess_pictures.__kwdefaults__ | {"plan": few}
    )
    monkeypatch.setattr(several, "MOST_PICTURES", 2)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG no picture")
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    (tmp_path / "whole.png").write_bytes(png_bytes(noise))
    monkeypatch.setattr(several, "sample_pictures", lambda: [tmp_path / "broken.png", tmp_path / "whole.png"])
    app = _app(app, tmp_path, 4, classes=["a", "b", "c", "d"])
    app.session_state["explain-part"] = "Several pictures"
    app.run()
    assert not app.exception and not app.error
    button = next(
        b for b in app.button if b.label.startswith("Measure whether they can be trusted · 2 pictures, about")
    )
    button.click().run()
    for job in jobs.the_client().running():
        assert job.wait(100)
    app.run()
    assert not app.exception and not app.error
    report = next(r for r, _ in jobs.the_client()._memory.values() if isinstance(r, PicturesPanel))
    numbers = json.loads(report.json)
    assert [row["picture"] for row in numbers["rows"]] == ["broken.png", "whole.png"]
    assert numbers["groups"][0]["pictures"] == 1
    says = " ".join([*(m.value for m in app.markdown), *(c.value for c in app.caption)]).replace("\\", "")
    assert "of 1 map is better than noise" in says and "1 picture of 2 gave no map." in says
    assert "One picture has no interval" in says
    tables = "".join(str(html.proto.body) for html in app.get("html"))
    assert all(f'data-table="trust-{key}"' in tables for key in ("answers", "means", "pictures"))
    names = [one.proto.label for one in app.get("download_button")]
    assert {"Numbers (CSV)", "Report (JSON)"} <= set(names)


def test_a_class_that_nobody_chose_follows_the_answer_and_is_no_choice(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, str] = {}
    monkeypatch.setattr(address, "write_address", lambda values, *, key: written.update(values))
    app = _app(app, tmp_path, 10)
    first = _of(app.selectbox, "Class").value
    assert (written["class"], written["mean"], written["crop"]) == ("", "", "")
    _of(app.text_input, "Mean per channel").set_value("-3, 9, 0.1234567").run()
    answered = _of(app.selectbox, "Class").value
    assert answered == int(_of(app.selectbox, "Class").options[0].split()[1]) != first
    assert _caption(app).endswith(f"looked for class {answered}")
    assert (written["class"], written["mean"], written["std"]) == ("", "-3, 9, 0.1234567", "")
    # One that was chosen stays, whatever the answer becomes.
    _of(app.selectbox, "Class").set_value(first).run()
    _of(app.text_input, "Mean per channel").set_value("9, -3, 9").run()
    assert _caption(app).endswith(f"looked for class {first}") and written["class"] == str(first)


def test_preprocessing_is_in_the_link_and_what_is_none_is_told(app: AppTest, tmp_path: Path) -> None:
    asked = {"resize": "48", "crop": "32", "mean": "0.1,0.2,0.1666667", "std": "0, 1, 1", "interpolation": "nearest"}
    for name, text in asked.items():
        app.query_params[name] = text
    app = _app(app, tmp_path, 4)
    assert _settled(app, " px") == "32 of 48 px, mean 0.1, 0.2, 0.167 (set on this page)"
    assert _of(app.text_input, "Mean per channel").value == "0.1, 0.2, 0.1666667"
    assert _of(app.text_input, "Deviation per channel").value == "0.25, 0.25, 0.25"
    said = [one.value.replace("\\", "") for one in app.caption if "The link asks for" in one.value]
    assert len(said) == 2
    assert any("“0, 1, 1”, which is no deviation of 3 numbers" in text for text in said)
    assert any(
        text.endswith("“nearest”, which is no interpolation that is known here: this is bilinear.") for text in said
    )
    _of(app.text_input, "Deviation per channel").set_value("1, 1, 1").run()
    assert len([one for one in app.caption if "The link asks for" in one.value]) == 1
