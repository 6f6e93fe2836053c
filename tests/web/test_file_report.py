"""The report that the Overview offers, heat maps kept for it, and how charts are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from inspector import read_report
from inspector.units import human_bytes
from inspector.web import charts, file_report, uploads
from inspector.web.session import Hand
from tests.file_report.made import ROOT, SAMPLES
from tests.file_report.test_read import kept_map


def _hold(app: AppTest, name: str) -> Hand:
    stored = uploads.the_store().put_bytes((SAMPLES / name).read_bytes(), name=name, owner="me")
    hand = Hand(sha256=stored.sha256, name=name)
    app.session_state["hand"] = hand
    return hand


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the download buttons of a page hand out, by file name."""
    found: dict[str, bytes] = {}

    def button(label: str, data: bytes, *, file_name: str, **_: object) -> bool:
        found[file_name] = data
        return False

    monkeypatch.setattr(file_report.st, "download_button", button)
    return found


def test_the_overview_offers_the_report_with_numbers_proofs_and_kept_maps(
    app: AppTest, offered: dict[str, bytes], tmp_path: Path
) -> None:
    hand = _hold(app, "shapes_dp.pth.tar")
    app.session_state["kept-maps"] = {hand.sha256: (kept_map(b"png"),), "0" * 64: (kept_map(), kept_map())}
    app.run().switch_page("pages/overview.py").run()
    assert not app.exception and not offered
    app.button(key="file-report").click().run()
    assert not app.exception
    html = offered["shapes_dp-report.html"].decode()
    (says,) = [m.value.replace("\\", "") for m in app.markdown if "is made" in m.value]
    assert says.startswith(
        f"shapes_dp-report.html is made: {human_bytes(len(html.encode()))}. In it: what the file is, "
    )
    assert "338 tensors with their numbers, the repair with 6 proofs and 1 heat map." in says
    (tmp_path / "r.html").write_text(html, encoding="utf-8")
    report = read_report(tmp_path / "r.html")
    assert report.file.sha256 == hand.sha256 and report.numbers_read
    assert report.repair is not None and [p.passed for p in report.repair.proofs] == [True] * 6
    assert "MACs at 224x224</span>" in html
    assert len(report.maps) == 1 and "<h2>Where it looks</h2>" in html


def test_every_page_offers_the_report_when_asked(app: AppTest, offered: dict[str, bytes]) -> None:
    hand = _hold(app, "shapes_dp.pth.tar")
    app.session_state["kept-maps"] = {hand.sha256: (kept_map(b"png"),)}
    app.run().switch_page("pages/contents.py").run()
    assert not offered
    app.button(key="side-report").click().run()
    assert not app.exception and set(offered) == {"shapes_dp-report.html"}
    assert any("and 1 heat map." in m.value.replace("\\", "") for m in app.markdown)
    assert "<h2>Where it looks</h2>" in offered["shapes_dp-report.html"].decode()


def test_a_file_without_weights_has_a_report_too(app: AppTest, offered: dict[str, bytes], tmp_path: Path) -> None:
    _hold(app, "bare_tensor.pt")
    app.run().switch_page("pages/overview.py").run()
    app.button(key="file-report").click().run()
    assert not app.exception
    (tmp_path / "r.html").write_bytes(offered["bare_tensor-report.html"])
    assert read_report(tmp_path / "r.html").repair is None


def test_a_map_is_kept_once_and_the_oldest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_report.st, "session_state", {})
    hand = Hand(sha256="a" * 64, name="a.pth")
    for n in range(30):
        file_report.keep_map(hand, replace(kept_map(), layer=f"layer{n}"))
    assert [one.layer for one in file_report.kept_maps(hand)] == [f"layer{n}" for n in range(6, 30)]
    file_report.keep_map(hand, replace(kept_map(b"other colours"), layer="layer10"))
    assert len(file_report.kept_maps(hand)) == 24 and file_report.kept_maps(hand)[-1].png == b"other colours"
    file_report.drop_maps(hand)
    assert file_report.kept_maps(hand) == ()


def test_charts_are_drawn_in_one_place_alone() -> None:
    drawn = (*(ROOT / "pages").glob("*.py"), *(ROOT / "inspector/web").rglob("*.py"))
    assert [path.name for path in drawn if ".plotly_chart(" in path.read_text(encoding="utf-8")] == ["charts.py"]


def _bar(**options: object) -> dict[str, object]:
    given: dict[str, object] = {}
    st_chart, files = st.plotly_chart, charts._files
    try:
        st.plotly_chart = lambda figure, **kept: given.update(kept)  # type: ignore[assignment,method-assign]
        charts._files = lambda **kept: given.update(files=kept)
        charts.draw_chart(go.Figure(), key="a!b", alt="An alt", **options)  # type: ignore[arg-type]
    finally:
        st.plotly_chart, charts._files = st_chart, files  # type: ignore[method-assign]
    return given


def test_a_chart_is_saved_under_its_key_by_the_one_button_of_its_bar() -> None:
    given = _bar()
    config = given["config"]
    assert isinstance(config, dict) and config["modeBarButtons"] == [["toImage"]]
    assert config["toImageButtonOptions"] == {"format": "svg", "filename": "a-b", "scale": 2}
    files = given["files"]
    assert isinstance(files, dict) and callable(files.pop("on_table_change"))
    assert files == {"key": "a!b-files", "data": {"chart": "a-b", "says": "An alt", "shown": False}}


def test_a_chart_with_a_bar_of_its_own_keeps_it() -> None:
    config = _bar(bar_without=("autoScale2d",), name="projection")["config"]
    assert isinstance(config, dict) and "modeBarButtons" not in config
    assert config["modeBarButtonsToRemove"] == ["autoScale2d"]
    assert config["toImageButtonOptions"]["filename"] == "projection"
