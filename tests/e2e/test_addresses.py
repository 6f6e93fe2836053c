"""Addresses and ids of the hub, typed into the box in a real browser; servers that answer badly; links to what is gone.

The app asks servers on this machine alone: one by https, with a certificate that it is told to trust, one as the hub.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running_app import SETTLED, running_app

from tests.hub_serving import publish
from tests.remote.test_hub import CONFIG, weights
from tests.serving import Handler, Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PATIENCE = 60_000


@dataclass
class House:
    """The app in a browser, and the servers that it asks. root: the folder that it opens to visitors."""

    page: Page
    url: str
    web: Server
    hub: Server
    root: Path

    def open(self, path: str = "/") -> None:
        self.page.goto(self.url + path)
        self.page.locator(".mi-title h1").wait_for(timeout=PATIENCE)
        self.settle()

    def settle(self) -> None:
        self.page.wait_for_function(SETTLED, timeout=PATIENCE)

    def look(self, where: str) -> None:
        box = self.page.get_by_role("textbox", name="Or an address or an id")
        box.fill(where)
        box.press("Enter")

    def choose(self, box: str, option: str) -> None:
        """From a list. What moves above it while the page is still being drawn closes it: it is opened again then."""
        from playwright.sync_api import TimeoutError as NotThere

        wanted = self.page.get_by_role("option", name=re.compile(re.escape(option)))
        self.page.get_by_role("combobox", name=box).wait_for()
        self.settle()
        for patience in (5_000, 10_000, PATIENCE):
            self.page.get_by_role("combobox", name=box).click()
            with contextlib.suppress(NotThere):
                wanted.wait_for(timeout=patience)
                break
        wanted.click()

    def text(self) -> str:
        return str(self.page.get_by_test_id("stMain").inner_text())

    def wait_for_overview(self, name: str) -> None:
        self.page.wait_for_url(re.compile("overview"), timeout=PATIENCE)
        self.page.locator(".mi-title h1").filter(has_text=name).wait_for(timeout=PATIENCE)
        self.settle()


def _certificate(folder: Path) -> Path:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "-", "-out", "-"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("no openssl here")
    place = folder / "both.pem"
    place.write_bytes(made.stdout)
    return place


@pytest.fixture(scope="module")
def house(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    root = folder / "opened to visitors"
    root.mkdir()
    certificate = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with (
        serving(context) as web,
        serving() as hub,
        running_app(
            folder,
            INSPECTOR_ADDRESSES="on",
            INSPECTOR_PRIVATE_ADDRESSES="on",
            INSPECTOR_WORKERS="0",
            INSPECTOR_ROOT=str(root),
            SSL_CERT_FILE=str(certificate),
            HF_ENDPOINT=hub.base,
        ) as server,
    ):
        visit = browser.new_context(viewport={"width": 1280, "height": 900})
        server.let_in(visit)
        page = visit.new_page()
        page.set_default_timeout(PATIENCE)
        yield House(page=page, url=server.url, web=web, hub=hub, root=root)
        visit.close()


def test_an_address_is_looked_at_and_fetched_when_that_is_asked_for(house: House) -> None:
    house.web.files["/models/a.safetensors"] = weights(30)
    where = f"{house.web.base}/models/a.safetensors"
    assert where.startswith("https://")
    house.open()
    house.look(where)
    house.wait_for_overview("a.safetensors")
    assert "Only its header was read, at its address" in house.text()
    assert house.web.sent < 300_000 < len(house.web.files["/models/a.safetensors"])
    # One step back is where it was typed, and forward again asks nobody anew.
    asked = len(house.web.log)
    house.page.go_back()
    house.page.get_by_role("textbox", name="Or an address or an id").wait_for()
    house.page.go_forward()
    house.wait_for_overview("a.safetensors")
    assert len(house.web.log) == asked
    house.page.get_by_role("button", name=re.compile("Fetch the whole file")).click()
    house.page.wait_for_function("() => !document.body.innerText.includes('Only its header was read')")
    house.wait_for_overview("a.safetensors")
    assert "sha256" in house.text()


def test_an_id_of_the_hub_opens_what_is_meant_and_asks_where_it_is_not_clear(house: House) -> None:
    publish(house.hub, "lab/net", {"model.safetensors": weights(3), "config.json": CONFIG})
    publish(house.hub, "lab/many", {"a.safetensors": weights(1), "b.safetensors": weights(2)})
    house.open()
    house.look("lab/net")
    house.wait_for_overview("lab/net/model.safetensors")
    house.open()
    house.look("lab/many")
    house.choose("Checkpoints of lab/many", "b.safetensors")
    house.settle()
    house.page.get_by_role("button", name="Open it").last.click()
    house.wait_for_overview("lab/many/b.safetensors")


def _breaks_off(handler: Handler) -> None:
    body = handler.told.files["/good.safetensors"]
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 0-131071/{len(body)}")
    handler.send_header("Content-Length", "131072")
    handler.end_headers()
    handler.wfile.write(body[:1000])
    handler.close_connection = True


BAD: dict[str, tuple[Any, str]] = {
    "ranges": (lambda h: h.answer(200, h.told.files["/good.safetensors"]), "does not send parts of a file"),
    "gone": (lambda h: h.answer(404, b""), "the server answers 404 Not Found"),
    "locked": (lambda h: h.answer(403, b""), "the server answers 403 Forbidden"),
    "short": (_breaks_off, "sent 1,000 of 131,072 bytes"),
    "elsewhere": (lambda h: h.redirect("file:///etc/hostname"), "which is no web address"),
    "page": (lambda h: h.answer_range(b"<!doctype html><html><title>Log in</title></html>"), "is a web page"),
}


def test_what_a_server_does_wrong_is_one_sentence_and_the_next_address_opens(house: House) -> None:
    house.web.files["/good.safetensors"] = weights(30)
    house.open()
    for name, (does, says) in BAD.items():
        path = f"/{name}/a.safetensors"
        house.web.odd[path] = does
        house.look(house.web.base + path)
        house.page.get_by_test_id("stAlert").filter(has_text=says).wait_for()
        house.settle()
        assert house.page.get_by_test_id("stAlert").count() == 1
        assert "Traceback" not in house.text() and "was not made for" not in house.text()
        assert house.page.get_by_role("button", name="Fetch the whole file").count() == (name == "ranges")
    house.look("lab/nothing")
    house.page.get_by_test_id("stAlert").filter(has_text="lab/nothing").wait_for()
    house.settle()
    house.look(f"{house.web.base}/good.safetensors")
    house.wait_for_overview("good.safetensors")


def test_a_link_to_what_is_gone_says_so_and_shows_the_way_on(house: House) -> None:
    inside = house.root / "run 7"
    inside.mkdir()
    (inside / "a.safetensors").write_bytes(weights(1))
    house.open("/files?folder=run+7")
    house.page.get_by_test_id("stDataFrame").wait_for()
    inside.rename(house.root / "run 8")
    for link, says in (
        ("files?folder=run+7", "There is no folder 'run 7' in what this server opens to visitors"),
        ("files?folder=..%2F..", "outside the folder this server opens"),
        (f"files?shelf={'ab' * 32}", "The folder of this link is not on the server any more"),
        (f"overview?file={'ab' * 32}&name=a.pth", "The file of this link is not on the server any more"),
    ):
        house.open(f"/{link}")
        assert says in house.text()
        assert "Traceback" not in house.text() and "was not made for" not in house.text()
        house.page.get_by_test_id("stMain").get_by_role("link").filter(
            has_text=re.compile("Drop|Open")
        ).first.wait_for()
