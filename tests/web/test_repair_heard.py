"""What the numbers say stands beside the question, and a contradicted answer is warned of."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.finishing import finish
from tests.web.recents import opened_before

ROOT = Path(__file__).resolve().parents[2]


def _open(app: AppTest, folder: Path) -> None:
    """The trained sample with one matrix for query, key and value, for the same with three."""
    joined, apart = {}, {}
    for name, tensor in load_file(ROOT / "sample_models/weights/shapes_vit.safetensors").items():
        stem, is_whole, leaf = name.partition("in_proj_")
        parts = zip("qkv", tensor.chunk(3), strict=True) if is_whole else ()
        apart |= {f"{stem}{part}_proj.{leaf}": half.clone() for part, half in parts} if is_whole else {name: tensor}
        joined[f"{stem}qkv.{leaf}" if is_whole else name] = tensor
    hands = []
    for name, tensors in (("joined.pth", joined), ("apart.pth", apart)):
        torch.save(tensors, folder / name)
        stored = uploads.the_store().put_bytes((folder / name).read_bytes(), name=name, owner="me")
        hands.append(Hand(sha256=stored.sha256, name=name))
    opened_before(app, hands)
    app.session_state["target-way"] = "file"
    app.run().switch_page("pages/repair.py").run()


def test_the_numbers_stand_beside_the_question_and_warn_of_a_contradicted_answer(app: AppTest, tmp_path: Path) -> None:
    _open(app, tmp_path)
    finish(app)
    assert not app.exception
    said = " ".join(caption.value for caption in app.caption)
    assert "In 4 of 4 layers" in said and "This speaks for" in said and "query, key, value below each other" in said
    radio = next(r for r in app.radio if r.key == "choose-qkv-order")
    assert radio.value is None, "it never answers by itself"
    radio.set_value("v-k-q").run()
    finish(app)
    assert not app.exception
    assert any("speak against this answer" in warning.value for warning in app.warning)
