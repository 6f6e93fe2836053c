"""The server goes away while a page is open, and comes back: what is said meanwhile, and that the page goes on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_app import SETTLED, free_port, running_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, WebSocketRoute

pytestmark = pytest.mark.browser
PATIENCE = 60_000
# What the page's connection goes through, and whether anything is said of it.
_WATCH = """() => {
  const app = document.querySelector('[data-test-connection-state]')
  window.states = []
  window.shown = 0
  new MutationObserver(() => {
    window.states.push(app.getAttribute('data-test-connection-state'))
    if (document.querySelector('.mi-away')) window.shown++
  }).observe(app, { attributes: true, childList: true })
}"""


@pytest.mark.parametrize("lost", ["server", "token"])
def test_a_server_that_is_started_anew_finds_the_page_as_it_was(browser: Browser, tmp_path: Path, lost: str) -> None:
    same = {"INSPECTOR_WORKERS": "0", "INSPECTOR_TOKEN": "the-token-of-this-test"}
    port = free_port()
    sample = Path(__file__).resolve().parents[2] / "sample_models" / "files" / "shapes_sick.pth"
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    with running_app(tmp_path, port=port, **same) as server:
        context.request.get(f"{server.url}/?token={same['INSPECTOR_TOKEN']}")
        page.goto(server.url)
        page.get_by_test_id("inspector-file").set_input_files(sample)
        page.wait_for_url(re.compile("overview.*file="))
        page.get_by_test_id("stSidebarNavLink").filter(has_text="Tensors").click()
        page.get_by_test_id("stDataFrame").wait_for()
        page.wait_for_function(SETTLED)
    note = page.locator(".mi-away")
    note.get_by_text("The server does not answer.").wait_for()
    assert "goes on once there is an answer" in note.inner_text()
    assert "Your file stays on the server" in note.inner_text()
    # The page is there to be read, and nobody is told to look into a terminal.
    assert page.get_by_role("dialog").count() == 0
    page.wait_for_timeout(9000)
    assert page.get_by_role("dialog").count() == 0
    assert page.get_by_test_id("stDataFrame").is_visible()

    if lost == "token":
        same["INSPECTOR_TOKEN"] = "another-token-of-this-test"
    with running_app(tmp_path, port=port, **same):
        if lost == "token":
            note.get_by_text("cut off from the server").wait_for()
            note.get_by_role("button", name="Load again").click()
            page.get_by_text("This server asks who you are").wait_for()
        else:
            note.get_by_text("The server answers again.").wait_for()
            note.wait_for(state="detached")
            page.wait_for_function(SETTLED)
            # What is asked for next is understood, in a part of the page that the new server has never drawn for it.
            page.get_by_role("textbox", name="Filter").fill("fc.")
            page.get_by_text("2 tensors of 338").wait_for()
        assert faults == []
        context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["no connection", "not even Streamlit's script"])
def test_a_page_that_was_never_connected_says_so_and_goes_on(browser: Browser, tmp_path: Path, scripts: bool) -> None:
    """As of a server that is just ending: it gives the page, and then nothing more."""
    with running_app(tmp_path, INSPECTOR_WORKERS="0") as server:
        context = browser.new_context()
        server.let_in(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        gone = True

        def answer(socket: WebSocketRoute) -> None:
            if gone:
                socket.close()
            else:
                socket.connect_to_server()

        page.route_web_socket(re.compile("stream"), answer)
        kept = r"/_stcore/" if scripts else r"/(_stcore|static)/"
        page.route(re.compile(kept), lambda route: route.abort() if gone else route.continue_())
        page.goto(server.url)
        note = page.locator(".mi-away")
        note.get_by_text("The server does not answer.").wait_for()
        assert "goes on once there is an answer" in note.inner_text()
        gone = False
        page.locator(".mi-title h1").wait_for()
        note.wait_for(state="detached")
        context.close()


def test_a_blip_is_not_spoken_of(browser: Browser, tmp_path: Path) -> None:
    with running_app(tmp_path, INSPECTOR_WORKERS="0") as server:
        context = browser.new_context()
        server.let_in(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        sockets: list[WebSocketRoute] = []

        def pass_on(socket: WebSocketRoute) -> None:
            socket.connect_to_server()
            sockets.append(socket)

        page.route_web_socket(re.compile("stream"), pass_on)
        page.goto(server.url)
        page.locator(".mi-title h1").wait_for()
        page.wait_for_function(SETTLED)
        page.evaluate(_WATCH)
        sockets[-1].close()
        page.wait_for_function("() => window.states.length > 1 && window.states.at(-1) === 'CONNECTED'")
        page.wait_for_timeout(3500)
        assert page.evaluate("() => window.shown") == 0
        context.close()
