"""The page as it is built, served and opened: with `make thorough`, where npm's package is (`npm ci --prefix site`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser_page import asking as in_page
from tests.browser_page import firefox as foxes

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "site" / "dist"
SAMPLES = ROOT / "sample_models" / "files"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "site")]

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def dist(request: pytest.FixtureRequest) -> Path:
    if not request.config.getoption("--thorough"):
        pytest.skip("the page is built and opened with --thorough")
    if not (ROOT / "site" / "node_modules" / "pyodide").is_dir():
        pytest.skip("Pyodide is not here: npm ci --prefix site")
    subprocess.run([sys.executable, str(ROOT / "site" / "build.py")], check=True)
    return DIST


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="module")
def firefox(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[foxes.Firefox]:
    path = foxes.find()
    if path is None:
        pytest.skip("No Firefox was found.")
    opened = foxes.Firefox(path, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def asking(request: pytest.FixtureRequest, address: str, dist: Path) -> Iterator[in_page.Tab]:
    """The page in each browser, ready to be asked (`asking.ask_in_page`); nothing may be asked of another server."""
    browser = request.getfixturevalue(request.param)
    if isinstance(browser, foxes.Firefox):
        in_page.start(browser, address, dist)
        yield browser
        assert browser.elsewhere(address) == []
        return
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    in_page.start(page, address, dist)
    yield page
    assert [url for url in asked if not url.startswith((address, f"blob:{address}"))] == []
    page.close()


@pytest.fixture(scope="session")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per test of the readers, and the samples. $COLLECTED may name one in which the files lie already
    (collecting.py)."""
    if not request.config.getoption("--thorough"):
        pytest.skip("what the tests of the readers make is collected with --thorough")
    there = Path(os.environ.get("COLLECTED") or tmp_path_factory.mktemp("made"))
    if not any(there.iterdir()):
        environment = {**os.environ, "COLLECT_INTO": str(there), "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "tests/readers", "-p", "tests.browser_page.collecting"],
            cwd=ROOT, env=environment, check=False, capture_output=True,
        )  # fmt: skip
    # No link: the page's Python would follow it on its own disk.
    shutil.copytree(SAMPLES, there / "samples", dirs_exist_ok=True)
    return there
