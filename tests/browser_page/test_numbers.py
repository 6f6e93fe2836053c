"""First values and a second file, as the page has them: beside what the app reads, and beside the whole comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from inspector.browser.session import Session
from inspector.compare.diff import compare_checkpoints
from inspector.compare.report import Relation
from inspector.readers import open_checkpoint

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"


def _ask(session: Session, **question: Any) -> Any:
    answer = json.loads(session.answer(json.dumps(question)))
    return answer["value"] if answer["ok"] else answer


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int64", "uint8", "bool"],
)
def test_first_values_are_torchs(dtype: str, tmp_path: Path) -> None:
    kind = getattr(torch, dtype)
    if dtype.startswith("float8"):
        tensor = torch.arange(256, dtype=torch.uint8).view(kind)
    elif kind.is_floating_point:
        tensor = torch.tensor([0.0, -0.0, 1.5, float("nan"), float("inf"), 1e-7, 1 / 3, *range(30)]).to(kind)
    else:
        tensor = torch.arange(-3, 40).to(kind)
    save_file({"a": tensor, "b": torch.zeros(0, dtype=kind)}, tmp_path / "a.safetensors")
    session, path = Session(), str(tmp_path / "a.safetensors")
    _ask(session, ask="open", path=path)
    told = _ask(session, ask="values", path=path, set=0, row=0)
    exact = torch.float64 if dtype == "float64" else torch.float32
    for shown, value in zip(
        told["values"], tensor[:24].to(exact) if kind.is_floating_point else tensor[:24], strict=True
    ):
        if kind.is_floating_point:
            assert torch.tensor([float(shown)], dtype=exact).view(torch.uint8).equal(value[None].view(torch.uint8)) or (
                shown == "nan" and bool(value.isnan())
            )
        else:
            assert shown == str(value.item())
    assert told["rest"] == f"and {tensor.numel() - 24:,} more, in row-major order"
    assert _ask(session, ask="values", path=path, set=0, row=1)["values"] == []


def test_packed_numbers_are_refused_in_words(tmp_path: Path) -> None:
    session, path = Session(), str(tmp_path / "a.pt")
    torch.save({"a": torch.quantize_per_tensor(torch.randn(5), 0.1, 0, torch.qint8)}, path)
    _ask(session, ask="open", path=path)
    answer = _ask(session, ask="values", path=path, set=0, row=0)
    assert answer["ok"] is False and "in the app" in answer["says"]


def _pair(tmp_path: Path, first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> tuple[str, str]:
    torch.save(first, tmp_path / "a.pth")
    torch.save({f"module.{name}": tensor for name, tensor in second.items()}, tmp_path / "b.pth")
    return str(tmp_path / "a.pth"), str(tmp_path / "b.pth")


def test_a_second_file_by_bytes_agrees_with_the_whole_comparison(tmp_path: Path) -> None:
    """What is the same is the same in both; nothing that the whole one calls changed is passed over."""
    made = {f"layers.{n}.weight": torch.randn(4, 5) for n in range(6)}
    other = {name: tensor.clone() for name, tensor in made.items()}
    other["layers.1.weight"][2, 3] = 7.0
    other["layers.2.weight"] = other["layers.2.weight"].half()
    other["layers.3.weight"] = torch.randn(4, 6)
    del other["layers.4.weight"]
    other["layers.9.weight"] = torch.randn(3)
    one, two = (open_checkpoint(path) for path in _pair(tmp_path, made, other))
    whole, bare = (compare_checkpoints(one, two, numbers=numbers) for numbers in (True, False))
    assert [t.name for t in whole.tensors] == [t.name for t in bare.tensors]
    for full, short in zip(whole.tensors, bare.tensors, strict=True):
        if short.relation is Relation.UNREAD:
            assert full.relation is Relation.CAST and short.note.startswith("in another type")
        else:
            assert short.relation is full.relation and short.numbers is None
    assert bare.differs()
    assert "1 changed" in bare.says and "1 of another shape" in bare.says and "1 not compared" in bare.says


@pytest.mark.parametrize("name", ["shapes_dp.pth.tar", "shapes_vit.safetensors"])
def test_a_file_beside_itself(name: str) -> None:
    session, path = Session(), str(SAMPLES / name)
    _ask(session, ask="open", path=path)
    told = _ask(session, ask="compare", path=path, other=path)
    assert told["differs"] is False and "What differs" not in told["html"]


def test_a_second_file_that_is_none_is_an_answer() -> None:
    session, path = Session(), str(SAMPLES / "shapes_dp.pth.tar")
    _ask(session, ask="open", path=path)
    told = _ask(session, ask="compare", path=path, other=str(SAMPLES / "picture.pth"))
    assert told["ok"] is False and "PNG" in told["says"]


def test_names_of_a_second_file_are_no_markup(tmp_path: Path) -> None:
    paths = []
    for n, text in enumerate(("<b>one", "<b>two")):
        save_file({"a": torch.ones(2), f"{text}": torch.ones(n + 2)}, tmp_path / f"{n}.safetensors", {"<i>": text})
        paths.append(str(tmp_path / f"{n}.safetensors"))
    session = Session()
    _ask(session, ask="open", path=paths[0])
    html = _ask(session, ask="compare", path=paths[0], other=paths[1])["html"]
    assert "<b>one" not in html and "&lt;b&gt;one" in html and "<i>" not in html
