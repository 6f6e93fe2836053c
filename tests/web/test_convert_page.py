"""The Convert page writes a file anew, merges an adapter, and refuses in the words of the core."""

from __future__ import annotations

import io
import json
import zipfile
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
    assert "Which adapter?" in " ".join(box.value for box in app.markdown)


def _adapter() -> dict[str, bytes]:
    base = {"fc.weight": torch.zeros(2, 3), "fc.bias": torch.ones(2)}
    pair = {"A": torch.tensor([[1.0, 2.0, 3.0]]), "B": torch.tensor([[1.0], [-1.0]])}
    return {
        "base.pth": _saved(base),
        "adapter_model.safetensors": save({f"base_model.model.fc.lora_{k}.weight": v for k, v in pair.items()}),
    }


def _give_config(app: AppTest, config: Mapping[str, object]) -> None:
    raw = json.dumps(config).encode()
    # Not Streamlit's own limit, which is for checkpoints.
    assert app.file_uploader(key="adapter-config").proto.max_upload_size_mb == 1
    app.file_uploader(key="adapter-config").upload("adapter_config.json", raw, "application/json").run()
    assert not app.exception and not app.error


def _merged(app: AppTest) -> list[list[float]]:
    app.button(key="merge-write").click().run()
    finish(app)
    assert not app.exception and not app.error
    made = load_file(_written("safetensors"))["fc.weight"]
    assert isinstance(made, torch.Tensor)
    rows: list[list[float]] = made.tolist()
    return rows


def test_an_adapter_is_merged_with_its_config_and_not_without(app: AppTest) -> None:
    _open(app, _adapter())
    app.selectbox(key="second-choice").select("adapter_model.safetensors (opened before)").run()
    app.button(key="second-go").click().run()
    assert app.button(key="merge-write").disabled
    _give_config(app, LORA)
    # Alpha 2 over rank 1: twice the product.
    assert _merged(app) == [[2, 4, 6], [-2, -4, -6]]
    assert "base_merged.safetensors" in _html(app)


def _overview_of_adapter(app: AppTest, **query: str) -> list[Hand]:
    """The adapter in hand, its base opened before."""
    hands = []
    for name, raw in reversed(_adapter().items()):
        stored = uploads.the_store().put_bytes(raw, name=name, owner="me")
        hands.append(Hand(sha256=stored.sha256, name=name))
    opened_before(app, hands)
    for name, value in query.items():
        app.query_params[name] = value
    app.run().switch_page("pages/overview.py").run()
    assert not app.exception
    return hands


def test_an_adapter_alone_asks_for_its_base_and_the_address_keeps_all_of_it(app: AppTest) -> None:
    _, base = _overview_of_adapter(app)
    assert "Which is its base model?" in " ".join(box.value for box in app.markdown)
    app.selectbox(key="second-choice").select("base.pth (opened before)").run()
    app.button(key="second-go").click().run()
    assert app.query_params["with"] == base.sha256
    _give_config(app, {**LORA, "lora_alpha": 3})
    digest = app.query_params["config"]
    assert json.loads(uploads.the_store().get_path(digest).read_bytes())["lora_alpha"] == 3
    assert _merged(app) == [[3, 6, 9], [-3, -6, -9]]
    assert "base_merged.safetensors" in _html(app)


def test_a_link_brings_back_base_and_config(app: AppTest) -> None:
    config = uploads.the_store().put_bytes(json.dumps(LORA).encode(), name="adapter_config.json", owner="other")
    base = uploads.the_store().put_bytes(_adapter()["base.pth"], name="base.pth", owner="other")
    _overview_of_adapter(app, config=config.sha256, **{"with": base.sha256, "with-name": "base.pth"})
    assert _merged(app) == [[2, 4, 6], [-2, -4, -6]]


def test_alpha_alone_is_the_scale_of_plain_lora(app: AppTest) -> None:
    base = uploads.the_store().put_bytes(_adapter()["base.pth"], name="base.pth", owner="other")
    hand, _ = _overview_of_adapter(app, **{"with": base.sha256})
    field = app.text_input(key=f"adapter-alpha-{hand.sha256}")
    field.set_value("much").run()
    assert "is no number" in app.error[0].value and app.button(key="merge-write").disabled
    app.text_input(key=f"adapter-alpha-{hand.sha256}").set_value("4").run()
    assert app.query_params["alpha"] == "4"
    assert _merged(app) == [[4, 8, 12], [-4, -8, -12]]


def test_a_link_whose_config_has_gone_asks_for_it(app: AppTest) -> None:
    base = uploads.the_store().put_bytes(_adapter()["base.pth"], name="base.pth", owner="other")
    _overview_of_adapter(app, config="0" * 64, **{"with": base.sha256})
    assert any("adapter" in box.value and "give it again" in box.value for box in app.warning)
    _give_config(app, LORA)
    assert _merged(app) == [[2, 4, 6], [-2, -4, -6]]


def test_an_archive_of_an_adapters_folder_brings_its_config(app: AppTest) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("lora/adapter_config.json", json.dumps(LORA))
        archive.writestr("lora/adapter_model.safetensors", _adapter()["adapter_model.safetensors"])
    base = uploads.the_store().put_bytes(_adapter()["base.pth"], name="base.pth", owner="other")
    _open(app, {"lora.zip": packed.getvalue()})
    app.query_params["with"] = base.sha256
    app.run()
    assert _merged(app) == [[2, 4, 6], [-2, -4, -6]]


def test_a_whole_model_is_not_asked_for_a_base(app: AppTest) -> None:
    _open(app, {"base.pth": _adapter()["base.pth"]})
    app.switch_page("pages/overview.py").run()
    assert "Which is its base model?" not in " ".join(box.value for box in app.markdown)


def test_layers_with_a_scale_of_their_own_are_told() -> None:
    from inspector.web.merging import _told

    config = {**LORA, "rank_pattern": {"v_proj": 8, "k_proj": 2}, "alpha_pattern": {"v_proj": 4}}
    assert _told(config) == "LORA, r 1, lora_alpha 2, rank_pattern for 2 names, alpha_pattern for 1 name"
    assert _told(LORA) == "LORA, r 1, lora_alpha 2"
