"""The app as Streamlit's own test driver runs it, with a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest

from inspector.web import uploads
from inspector.web.front.visitors import own_visitors
from tests.web.finishing import forget_client

ROOT = Path(__file__).resolve().parents[2]


def _run_main(path: str) -> None:
    exec(compile(Path(path).read_text(), path, "exec"), {"__name__": "__main__", "__file__": path})


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    monkeypatch.setenv("INSPECTOR_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("INSPECTOR_ROOT", raising=False)
    monkeypatch.setattr(uploads, "_mounted", False)
    # AppTest takes pages/ for Streamlit's older kind of multipage app; app.py switches that off for the server.
    monkeypatch.setattr(script_runner, "_mpa_v1", _run_main)
    # Jobs in this process: what they run can be watched and changed. The workers have tests of their own.
    monkeypatch.setenv("INSPECTOR_WORKERS", "0")
    forget_client()
    uploads.the_store.cache_clear()
    own_visitors.cache_clear()
    yield AppTest.from_file(str(ROOT / "ui.py"), default_timeout=120)
    forget_client()
    uploads.the_store.cache_clear()
