"""Two servers over one store behind a balancer: uploads to either, pages at either, and one of them is killed."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_app import SETTLED, Server, free_port, running_app

from tests.e2e.replicas_proxy import Head, Proxy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PATIENCE = 60_000
_SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"


def test_a_killed_server_loses_nobodys_file(browser: Browser, tmp_path: Path) -> None:
    token = "the-token-of-this-test"
    store = tmp_path / "store"
    shared = {
        "INSPECTOR_WORKERS": "0",
        "INSPECTOR_TOKEN": token,
        "INSPECTOR_STORE": str(store),
        "INSPECTOR_STORE_SHARED": "on",
    }
    a, b = free_port(), free_port()
    numbers = count()

    def rule(head: Head) -> int:
        # Pages hold to one server, as by a cookie; uploads go to the other one, and all else in turn.
        return a if head.is_page else b if head.method == "PUT" else (a, b)[next(numbers) % 2]

    proxy = Proxy([a, b], rule)
    servers: dict[int, Server] = {}
    with ExitStack() as running:
        for name, port in (("a", a), ("b", b)):
            (tmp_path / name).mkdir()
            servers[port] = running.enter_context(running_app(tmp_path / name, port=port, **shared))
        mine, theirs = browser.new_context(), browser.new_context()
        pages: list[Page] = []
        for context, sample in ((mine, "shapes_sick.pth"), (theirs, "shapes.pth")):
            context.request.get(f"{proxy.url}/?token={token}")
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(proxy.url)
            page.get_by_test_id("inspector-file").set_input_files(_SAMPLES / sample)
            page.wait_for_url(re.compile("overview.*file="))
            page.wait_for_function(SETTLED)
            assert sample in page.get_by_test_id("stMain").inner_text() + page.url
            pages.append(page)
        uploads = [port for port, head in proxy.sent if head.method == "PUT"]
        assert uploads == [b, b] and {port for port, head in proxy.sent if head.is_page} == {a}
        assert {port for port, head in proxy.sent if head.method == "GET"} == {a, b}
        # One visitor at both: nobody was taken for somebody new.
        cookies = {one["value"] for one in mine.cookies() if one["name"].startswith("inspector_visitor")}
        assert len(cookies) == 1

        servers[a].process.kill()
        # What was on its way to it is gone, as anywhere; from here on everything goes to the other one.
        servers[a].process.wait()
        began = time.monotonic()
        # A click before a page noticed is lost, as Streamlit has it.
        while sum(port == b and head.is_page for port, head in proxy.sent) < len(pages):
            assert time.monotonic() - began < PATIENCE / 1000
            pages[0].wait_for_timeout(100)
        print(f"both pages are at the other server after {time.monotonic() - began:.1f} s")
        for page, sample in zip(pages, ("shapes_sick.pth", "shapes.pth"), strict=True):
            page.wait_for_function(SETTLED)
            page.get_by_test_id("stSidebarNavLink").filter(has_text="Tensors").click()
            page.get_by_test_id("stDataFrame").wait_for()
            page.wait_for_function(SETTLED)
            page.reload()
            page.get_by_test_id("stDataFrame").wait_for()
            page.wait_for_function(SETTLED)
            assert sample in page.get_by_test_id("stMain").inner_text() + page.url
        assert {port for port, head in proxy.sent[-6:]} == {b}
        # What each of them had is on its own list, and no other's.
        for page, own, other in (
            (pages[0], "shapes_sick.pth", "shapes.pth"),
            (pages[1], "shapes.pth", "shapes_sick.pth"),
        ):
            page.goto(proxy.url)
            page.get_by_test_id("stMain").get_by_text(own).first.wait_for()
            page.wait_for_function(SETTLED)
            assert page.get_by_test_id("stMain").get_by_text(other).count() == 0
        assert len(list((store / "files").iterdir())) == 2
        for context in (mine, theirs):
            context.close()
    proxy.close()
