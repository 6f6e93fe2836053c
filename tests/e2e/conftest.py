"""The real server on a port of its own, with a store of its own, and a real Chromium."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from browser import find, on_ci  # noqa: E402
from running_app import FLAGS, SETTLED, Server, running_app  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

# torch's first import on a busy machine; pages themselves answer in well under a second.
PATIENCE = 60_000


# Not for the session: Playwright keeps an event loop in the main thread, and tests that come later begin their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = find()
    if path is None:
        says = "No Chromium or Chrome was found for the browser tests."
        pytest.fail(says) if on_ci() else pytest.skip(says)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=[*FLAGS, "--process-per-site"])
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_app(tmp_path_factory.mktemp("server")) as running:
        yield running


@dataclass
class Visitor:
    """One visitor with a fresh session, and what went wrong in the browser's console."""

    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)

    @property
    def main(self) -> Locator:
        return self.page.get_by_test_id("stMain")

    def open(self, path: str = "/") -> None:
        self.page.goto(self.url + path)
        self.page.locator(".mi-title h1").wait_for(timeout=PATIENCE)
        self.settle()

    def upload(self, file: Path) -> None:
        """Through the drop zone, to the end of the first look."""
        self.open("/")
        self.page.get_by_test_id("inspector-file").set_input_files(file)
        try:
            self.page.wait_for_url(re.compile("overview"), timeout=PATIENCE)
        except Exception as error:
            # What stood there instead tells more than that a minute passed.
            raise AssertionError(f"After {file.name}, at {self.page.url}: {self.text()[:600]!r}") from error
        self.settle()

    def visit(self, name: str) -> None:
        """Another page, by its link in the sidebar, until its own heading stands there."""
        self.page.get_by_test_id("stSidebarNavLink").filter(has_text=name).click()
        heading = {"Open": "Open a checkpoint", "Overview": ""}.get(name, name)
        if heading:
            self.page.locator(".mi-title h1").filter(has_text=re.compile(f"^{heading}$")).wait_for(timeout=PATIENCE)
        else:
            self.page.wait_for_url(re.compile("overview"), timeout=PATIENCE)
            self.page.get_by_text("What is this file?").wait_for(timeout=PATIENCE)
        self.settle()

    def settle(self) -> None:
        """Until the script has ended and nothing on the page is stale."""
        self.page.wait_for_function(SETTLED, timeout=PATIENCE)

    def text(self) -> str:
        return self.main.inner_text()

    def check_calm(self) -> None:
        """No console error and no stack trace on the page."""
        assert self.troubles == []
        text = self.text()
        for trace in ("Traceback", 'File "/', "site-packages", "was not made for"):
            assert trace not in text


@pytest.fixture(scope="package")
def resident(browser: Browser, server: Server) -> Iterator[Page]:
    """A page that stays open while visitors come and go, so that the browser's process and its cache stay, too:
    Streamlit's scripts are then read and compiled once, not for each visitor."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
    page = context.new_page()
    page.goto(f"{server.url}/inspector/health")
    yield page
    context.close()


@pytest.fixture
def visitor(resident: Page, server: Server) -> Iterator[Visitor]:
    context = resident.context
    server.let_in(context)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    who = Visitor(page=page, url=server.url)
    page.on("console", lambda m: who.troubles.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: who.troubles.append(str(e)))
    yield who
    # Nothing of this visitor is there for the next one.
    for own in context.pages:
        if own is not resident:
            own.close()
    context.clear_cookies()
    resident.evaluate("() => localStorage.clear()")


@pytest.fixture(scope="session")
def samples() -> Path:
    folder = ROOT / "sample_models" / "files"
    if not folder.is_dir():
        pytest.fail("The sample files are missing: python sample_models/build.py derive")
    return folder
