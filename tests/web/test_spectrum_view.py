"""The spectrum of a tensor on the Tensors page: asked for by a button, with its numbers, or why there is none."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from inspector.health import spectra
from inspector.web import uploads
from inspector.web.session import Hand
from tests.web.finishing import finish
from tests.web.recents import opened_before

PAGE = """
from inspector.web import reports, session
from inspector.web.tensor_panel import tensor_panel
hand = session.in_hand()
checkpoint = reports.checkpoint_of(hand)
state = checkpoint.weights
tensor_panel(hand, next(t for t in state.tensors if t.name == NAME), state=state)
"""


def panel(state: Mapping[str, torch.Tensor], name: str) -> AppTest:
    raw = io.BytesIO()
    torch.save(dict(state), raw)
    stored = uploads.the_store().put_bytes(raw.getvalue(), name="net.pth", owner="me")
    found = AppTest.from_string(PAGE.replace("NAME", repr(name)), default_timeout=60)
    hand = Hand(sha256=stored.sha256, name="net.pth")
    opened_before(found, [hand])
    found.run()
    assert not found.exception
    return found


def views(app: AppTest) -> list[str]:
    (bar,) = (one for one in app.get("button_group") if one.label == "Look at")
    return [str(option).rpartition(" ")[2] for option in bar.options]


def spectrum(app: AppTest) -> str:
    """Choose the view, press its button, wait; the HTML of the page."""
    next(one for one in app.get("button_group") if one.label == "Look at").set_value("Spectrum").run()
    assert not app.exception
    next(one for one in app.button if one.label == "Compute the spectrum").click().run()
    finish(app)
    assert not app.exception and not app.error
    return " ".join(element.proto.body for element in app.get("html"))


def captions(app: AppTest) -> str:
    return " ".join(one.value for one in app.caption)


@pytest.fixture
def layers() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {"mlp.0.weight": torch.randn(64, 80) / 8, "mlp.0.bias": torch.zeros(64), "mlp.2.weight": torch.randn(3, 64)}


def test_the_numbers_are_numpys(app: AppTest, layers: dict[str, torch.Tensor]) -> None:
    page = panel(layers, "mlp.0.weight")
    assert views(page) == ["Histogram", "Rows", "Values", "Spectrum"]
    html = spectrum(page)
    values = np.linalg.svd(layers["mlp.0.weight"].double().numpy(), compute_uv=False)
    assert "64x80" in html and f"{values[0]:.4g}" in html
    assert f"{(values**2).sum() / values[0] ** 2:.1f} of 64" in html and "effective rank" in html
    assert "alpha" in html and "in the tail" in html and "contested" in captions(page)
    assert "mi-finding" not in html


def test_a_small_matrix_has_no_alpha_and_a_thin_one_a_finding(app: AppTest, layers: dict[str, torch.Tensor]) -> None:
    page = panel(layers, "mlp.2.weight")
    assert "in the tail" not in spectrum(page) and "no power law is fitted" in captions(page)
    layers["mlp.0.weight"] = torch.randn(64, 2) @ torch.randn(2, 80)
    page = panel(layers, "mlp.0.weight")
    assert 'data-finding="low-rank"' in spectrum(page) and "62 values of 64 below" in captions(page)


def test_what_has_no_spectrum_says_why(
    app: AppTest, layers: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Spectrum" not in views(panel(layers, "mlp.0.bias"))
    monkeypatch.setattr(spectra, "MOST_SIDE", 63)
    page = panel(layers, "mlp.0.weight")
    html = spectrum(page)
    assert "spectral norm" in html and "effective rank" not in html and "shorter side of 64" in captions(page)
    layers["mlp.0.weight"][0, 0] = float("nan")
    page = panel(layers, "mlp.0.weight")
    spectrum(page)
    assert [one.value for one in page.info] == ["No spectrum: it holds NaN or infinity."]
    monkeypatch.setattr(spectra, "MOST_NUMEL", 63)
    layers["mlp.0.weight"][0, 0] = 2
    page = panel(layers, "mlp.0.weight")
    spectrum(page)
    assert [one.value for one in page.info] == ["No spectrum: 64x80 is more than 63 elements."]
