"""The Projector page: the answer first, everything chosen in the address, names, neighbours, tables, pictures."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.doctor.maps_asked import Side
from inspector.projector.neighbours import nearest
from inspector.projector.project import project
from inspector.web import uploads
from inspector.web.projector_map import Source, chosen_places, projector_zip, search
from inspector.web.session import Hand
from tests.projector.making import points
from tests.web.finishing import finish
from tests.web.recents import opened_before

FILES = Path(__file__).resolve().parents[2] / "sample_models" / "files"


def hold(app: AppTest, raw: bytes, name: str = "net.pth") -> None:
    stored = uploads.the_store().put_bytes(raw, name=name, owner="me")
    hand = Hand(sha256=stored.sha256, name=name)
    opened_before(app, [hand])


def saved(tensors: dict[str, Any]) -> bytes:
    raw = io.BytesIO()
    torch.save(tensors, raw)
    return raw.getvalue()


def table() -> dict[str, Any]:
    """An embedding with a row far away and one of zeros, and a head of two classes, named."""
    torch.manual_seed(0)
    rows = torch.randn(60, 32)
    rows[7] *= 30
    head = torch.randn(2, 32)
    return {"embed.weight": rows, "head.weight": head, "head.bias": torch.zeros(2), "classes": ["cat", "dog"]}


def opened(app: AppTest, **address: str) -> AppTest:
    app.run()
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/projector.py").run()
    finish(app)
    assert not app.exception
    return app


def answer(app: AppTest) -> str:
    found = [e.proto.body for e in app.get("html") if "mi-answer" in e.proto.body]
    return found[0] if found else ""


def words(app: AppTest) -> str:
    said = [*(c.value for c in app.caption), *(m.value for m in app.markdown)]
    return " ".join(said).replace("\\", "")


def test_the_answer_comes_first_and_the_embedding_is_proposed(app: AppTest) -> None:
    hold(app, saved(table()))
    page = opened(app)
    assert "60 rows of embed.weight; the first two directions hold" in answer(page)
    assert "1 row stands apart; 0 rows untrained." in answer(page)
    assert len(page.get("plotly_chart")) == 1 and not page.error


def test_the_address_restores_what_was_chosen(app: AppTest) -> None:
    hold(app, saved(table()))
    page = opened(app, tensor="head.weight", along="columns", colour="norm", find="3")
    assert "32 columns of head.weight" in answer(page)
    assert "1 column found." in words(page) and "Nearest to column 3" in words(page)
    page.selectbox[0].select("embed.weight").run()
    finish(page)
    assert "32 columns of embed.weight" in answer(page)


def test_what_the_address_says_and_there_is_not_is_passed_over(app: AppTest) -> None:
    hold(app, saved(table()))
    page = opened(app, tensor="no.such", method="none", seed="x", colour="x", along="x")
    assert "60 rows of embed.weight" in answer(page) and not page.error


def test_rows_of_the_head_are_called_as_the_file_calls_its_classes(app: AppTest) -> None:
    hold(app, saved(table()))
    page = opened(app, tensor="head.weight", along="rows", find="dog")
    assert "Nearest to dog" in words(page)
    near = next(frame.value for frame in page.dataframe if "Distance" in frame.value)
    assert near["Name"].tolist() == ["cat"]
    head = table()["head.weight"]
    assert near["Distance"][0] == pytest.approx(1 - float(torch.cosine_similarity(head[0], head[1], dim=0)), abs=1e-6)


def test_a_method_without_its_library_is_one_sentence(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.installed.is_installed", lambda name: name not in ("sklearn", "umap"))
    hold(app, saved(table()))
    page = opened(app, method="UMAP", seed="3")
    (error,) = page.error
    assert "UMAP needs umap, which is not installed" in error.value and "pip install" in error.value.replace("\\", "")


def test_a_file_without_rows_says_so(app: AppTest) -> None:
    hold(app, saved({"a.weight": torch.randn(5), "a.bias": torch.randn(5)}))
    page = opened(app)
    assert "there are no rows to draw" in page.info[0].value


def test_dead_filters_of_the_sick_sample_are_told(app: AppTest) -> None:
    hold(app, (FILES / "shapes_sick.pth").read_bytes())
    page = opened(app, tensor="conv5.0.weight")
    assert "1,024 filters of conv5.0.weight" in answer(page) and "256 filters dead" in answer(page)
    assert any("256 filters dead" in one.label for one in page.expander)


def test_pictures_at_a_layer(app: AppTest) -> None:
    hold(app, (FILES / "shapes.safetensors").read_bytes(), "shapes.safetensors")
    page = opened(app, **{"map-of": "Pictures at a layer"})
    assert not page.error
    assert "8 pictures at fc" in answer(page)
    layer = next(box for box in page.selectbox if box.label == "Layer")
    assert layer.options[0].startswith("what fc reads · 1x1024")


def test_an_event_is_believed_where_it_can_be_true() -> None:
    def event(*data: Any) -> Any:
        return SimpleNamespace(selection=SimpleNamespace(points=[{"customdata": one} for one in data]))

    assert chosen_places(event([3, "1.2"], {"0": 1, "1": "2"}, 2, [3, "x"]), 5) == [1, 2, 3]
    assert chosen_places(event([9], [-1], None, "x", []), 5) == []
    assert chosen_places(None, 5) == [] and chosen_places(SimpleNamespace(selection=None), 5) == []


def test_search_by_name_then_by_number() -> None:
    made = project(points(np.random.default_rng(0).normal(size=(4, 3)), labels=("Cat", "dog", "cart", "12")))
    assert search(made, "CA") == [0, 2] and search(made, "12") == [3] and search(made, "2") == [3]
    assert search(made, "1") == [3] and search(made, "") == [] and search(made, "9" * 40) == []
    bare = project(points(np.random.default_rng(0).normal(size=(4, 3)), numbers=np.array([2, 5, 6, 7])))
    assert search(bare, "5") == [1] and search(bare, "1") == []


def test_the_projectors_files_are_of_the_points_on_the_map() -> None:
    values = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    whole = points(values)
    few = points(values[[1, 4]], numbers=np.array([1, 4]))
    source = Source(projection=project(few), near=lambda n, m: nearest(whole, n), vectors=lambda: whole, key="k")
    with zipfile.ZipFile(io.BytesIO(projector_zip(source))) as archive:
        back = np.loadtxt(io.StringIO(archive.read("vectors.tsv").decode()), dtype=np.float32)
        assert np.array_equal(back, values[[1, 4]])
        assert archive.read("metadata.tsv").decode().splitlines()[0] == "row\tnorm\tapart"


def test_what_the_head_reads_comes_first() -> None:
    from inspector.web.projector_pictures import layers_of

    def call(path: str, kind: str, given: tuple[int, ...], gives: tuple[int, ...], time: int = 1) -> Any:
        return SimpleNamespace(
            path=path,
            kind=kind,
            time=time,
            inputs=[SimpleNamespace(shape=given)],
            outputs=[SimpleNamespace(shape=gives)],
        )

    trace: Any = SimpleNamespace(
        calls=[
            call("conv", "Conv2d", (1, 3, 8, 8), (1, 4, 8, 8)),
            call("act", "ReLU", (1, 4, 8, 8), (1, 4, 8, 8)),
            call("act", "ReLU", (1, 4, 8, 8), (1, 4, 8, 8), 2),
            call("norm", "Scale", (4,), (4,)),
            call("fc", "Linear", (1, 4), (1, 3)),
        ]
    )
    found = layers_of(trace)
    assert next(iter(found)) == "what fc reads · 1x4"
    assert found["what fc reads · 1x4"].side is Side.INPUT
    assert "act, call 2 · ReLU · 1x4x8x8" in found and not any("norm" in word for word in found)
