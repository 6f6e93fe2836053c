"""The Compare page: the answer first, what proves it, the table, both histograms; the second file in the address."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.finishing import finish
from tests.web.recents import opened_before


def hold(app: AppTest, *files: tuple[str, dict[str, Any]]) -> list[str]:
    """Stored and opened, the first one in hand; their digests."""
    hands = []
    for name, state in files:
        raw = io.BytesIO()
        torch.save(state, raw)
        stored = uploads.the_store().put_bytes(raw.getvalue(), name=name, owner="me")
        hands.append(Hand(sha256=stored.sha256, name=name))
    opened_before(app, hands)
    return [hand.sha256 for hand in hands]


def opened(app: AppTest, **address: str) -> AppTest:
    app.run()
    for name, value in address.items():
        app.query_params[name.replace("_", "-")] = value
    app.switch_page("pages/compare.py").run()
    finish(app)
    assert not app.exception
    return app


def answer(app: AppTest) -> str:
    found = [e.proto.body for e in app.get("html") if 'class="mi-answer"' in e.proto.body]
    return found[0] if found else ""


@pytest.fixture
def states() -> tuple[dict[str, Any], dict[str, Any]]:
    torch.manual_seed(0)
    a = {"body.weight": torch.randn(40, 40), "body.bias": torch.zeros(40), "head.weight": torch.randn(4, 40)}
    return a, {**a, "head.weight": a["head.weight"] + 1}


def test_without_a_second_file_the_boxes_to_choose_one(app: AppTest, states: Any) -> None:
    hold(app, ("a.pth", states[0]), ("b.pth", states[1]))
    page = opened(app)
    assert not answer(page)
    assert "b.pth (opened before)" in page.selectbox(key="second-choice").options
    page.selectbox(key="second-choice").select("b.pth (opened before)").run()
    page.button(key="second-go").click().run()
    finish(page)
    assert "Only 1 layer changed: head" in answer(page)
    assert page.query_params["with-name"] == "b.pth"


def test_a_link_restores_both_files_and_the_table(app: AppTest, states: Any) -> None:
    _, second = hold(app, ("a.pth", states[0]), ("b.pth", states[1]))
    page = opened(app, **{"with": second, "with_name": "mine.pth"})
    assert "the other 2 tensors are equal to the last bit" in answer(page)
    (frame,) = (f.value for f in page.dataframe)
    assert frame["Tensor"].tolist() == ["head.weight"]
    norm = states[0]["head.weight"].double().norm()
    assert frame["Relative L2"].tolist() == pytest.approx([float(160**0.5 / norm)], rel=1e-6)
    # Both heat strips have a row for each pair of matrices.
    strips = [json.loads(chart.proto.spec) for chart in page.get("plotly_chart") if "fingerprint" in chart.proto.id]
    assert [strip["data"][0]["y"] for strip in strips] == [["body.weight", "head.weight"]] * 2
    assert any("mine.pth" in m.value.replace("\\", "") for m in page.markdown)


def test_another_second_file_can_be_chosen(app: AppTest, states: Any) -> None:
    _, second = hold(app, ("a.pth", states[0]), ("b.pth", states[1]))
    page = opened(app, **{"with": second})
    page.button(key="second-other").click().run()
    assert not answer(page)
    assert "with" not in page.query_params


def test_a_second_file_that_has_gone_is_asked_for_again(app: AppTest, states: Any) -> None:
    hold(app, ("a.pth", states[0]))
    page = opened(app, **{"with": "0" * 64})
    assert "not on the server any more" in page.warning[0].value
    assert not page.error


def test_the_weights_of_a_file_beside_its_own_average(app: AppTest, states: Any) -> None:
    file = {"state_dict": states[0], "ema_state_dict": {k: 0.9 * v for k, v in states[0].items()}}
    (digest,) = hold(app, ("run.ckpt", file))
    page = opened(app, **{"with": digest})
    assert "moving average by its names" in answer(page)


def test_two_that_have_nothing_in_common(app: AppTest, states: Any) -> None:
    _, second = hold(app, ("a.pth", states[0]), ("c.pth", {"x": torch.randn(3, 5, 7), "y": torch.randn(9)}))
    page = opened(app, **{"with": second})
    assert "nothing in common" in answer(page)
    assert not page.error


def test_rows_of_two_optimizers_have_the_names_of_their_parameters(app: AppTest) -> None:
    def trained(steps: int) -> dict[str, Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(steps):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    first, second = hold(app, ("a.pth", trained(1)), ("b.pth", trained(2)))
    app.session_state[f"state-of/{first}"] = ("optimizer",)
    page = opened(app, **{"with": second})
    (frame,) = (f.value for f in page.dataframe)
    named = dict(zip(frame["Tensor"], frame["Parameter"], strict=True))
    assert named["state.2.exp_avg"] == "1.weight" and named["state.1.exp_avg_sq"] == "0.bias"
