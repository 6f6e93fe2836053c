"""The Convert page writes a file anew, merges an adapter, and refuses in the words of the core."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.finishing import finish
from tests.web.recents import opened_before

ROOT = Path(__file__).resolve().parents[2]
LORA = {"peft_type": "LORA", "r": 1, "lora_alpha": 2, "target_modules": ["fc"]}


def _saved(content: object) -> bytes:
    made = io.BytesIO()
    torch.save(content, made)
    return made.getvalue()


def _open(app: AppTest, files: Mapping[str, bytes]) -> None:
    """The first file in hand, all of them opened in this session."""
    hands = []
    for name, raw in files.items():
        stored = uploads.the_store().put_bytes(raw, name=name, owner="me")
        hands.append(Hand(sha256=stored.sha256, name=name))
    opened_before(app, hands)
    app.run().switch_page("pages/convert.py").run()
    assert not app.exception


def _html(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def _written(ending: str) -> Path:
    (made,) = uploads.the_store().exports.rglob(f"*.{ending}")
    return made


def test_another_type_and_format(app: AppTest) -> None:
    _open(app, {"net.pth": _saved({"fc.weight": torch.tensor([1.0, 1e9]), "step": torch.tensor(3)})})
    app.selectbox(key="convert-dtype").set_value("float16").run()
    app.button(key="convert-write").click().run()
    finish(app)
    assert not app.exception
    made = load_file(_written("safetensors"))
    assert made["fc.weight"].dtype is torch.float16 and int(made["step"]) == 3
    assert any("largest rounding error" in caption.value and "1 overflow" in caption.value for caption in app.caption)
    assert "net_converted.safetensors" in _html(app)


def test_only_the_averaged_twin(app: AppTest) -> None:
    twins = {f"{twin}.fc.{n}": torch.full((2,), v) for twin, v in (("model", 1.0), ("ema", 2.0)) for n in "ab"}
    _open(app, {"net.pth": _saved(twins)})
    app.checkbox(key="ema").check().run()
    app.button(key="convert-write").click().run()
    finish(app)
    made = load_file(_written("safetensors"))
    assert {name: tensor.tolist() for name, tensor in made.items()} == {"fc.a": [2.0, 2.0], "fc.b": [2.0, 2.0]}


def test_a_file_without_averages_is_asked_nothing(app: AppTest) -> None:
    _open(app, {"net.pth": _saved({"fc.weight": torch.ones(2)})})
    assert [box.key for box in app.checkbox] == ["without-broken"]
    assert any("Open the adapter" in box.value for box in app.info)


def _adapter() -> dict[str, bytes]:
    base = {"fc.weight": torch.zeros(2, 3), "fc.bias": torch.ones(2)}
    pair = {"A": torch.tensor([[1.0, 2.0, 3.0]]), "B": torch.tensor([[1.0], [-1.0]])}
    return {
        "base.pth": _saved(base),
        "adapter_model.safetensors": save({f"base_model.model.fc.lora_{k}.weight": v for k, v in pair.items()}),
    }


def test_an_adapter_is_merged_with_its_config_and_refused_without(app: AppTest) -> None:
    _open(app, _adapter())
    app.selectbox(key="adapter").set_value(0).run()
    app.button(key="merge-write").click().run()
    finish(app)
    assert not app.exception
    assert "There is no adapter_config.json" in app.error[0].value.replace("\\", "")
    assert not list(uploads.the_store().exports.rglob("*.safetensors"))
    config = json.dumps(LORA).encode()
    app.file_uploader(key="adapter-config").upload("adapter_config.json", config, "application/json").run()
    app.button(key="merge-write").click().run()
    finish(app)
    assert not app.exception and not app.error
    # Alpha 2 over rank 1: twice the product.
    assert load_file(_written("safetensors"))["fc.weight"].tolist() == [[2, 4, 6], [-2, -4, -6]]
    assert "base_merged.safetensors" in _html(app)
