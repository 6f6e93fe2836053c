"""The page as it is built, served and opened: with `make thorough`, where npm's package is (`npm ci --prefix site`)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "site" / "dist"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "site")]

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def dist(request: pytest.FixtureRequest) -> Path:
    if not request.config.getoption("--thorough"):
        pytest.skip("the page is built and opened with --thorough")
    if not (ROOT / "site" / "node_modules" / "pyodide").is_dir():
        pytest.skip("Pyodide is not here: npm ci --prefix site")
    subprocess.run([sys.executable, str(ROOT / "site" / "build.py")], check=True)
    return DIST


@pytest.fixture(scope="module")
def address(dist: Path) -> Iterator[str]:
    from serve import server

    made = server(dist)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}/"
    made.shutdown()


@pytest.fixture(scope="module")
def chromium(dist: Path) -> Iterator[Browser]:
    from browser import find

    path = find()
    if path is None:
        pytest.skip("No Chromium or Chrome was found.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()
