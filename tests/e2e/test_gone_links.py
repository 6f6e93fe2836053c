"""Links to every page whose file is gone: each asks for it, and shows what the link showed once it is given."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_app import free_port, running_app

from tests.e2e.conftest import PATIENCE, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
_SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
_SICK, _TENSOR = "shapes_sick.pth", "stage3.2.branch2.5.weight"


@dataclass(frozen=True)
class Link:
    """file: of the samples. more: what the address says beside it. shows: what stands on the page again. names: under
    which the address has the digest and the name."""

    page: str
    file: str
    shows: Callable[[Visitor], None]
    more: str = ""
    names: tuple[str, str] = ("file", "name")

    def address(self) -> str:
        digest, name = self.names
        return f"/{self.page}?{digest}={digest_of(self.file)}&{name}={self.file}{self.more}"


def digest_of(file: str) -> str:
    return hashlib.sha256((_SAMPLES / file).read_bytes()).hexdigest()


def _text(says: str, within: str = "") -> Callable[[Visitor], None]:
    """Until it stands there. within: the kind of element that holds it."""
    return lambda who: (
        who.main.locator(within).filter(has_text=says).first.wait_for()
        if within
        else who.main.get_by_text(says).first.wait_for()
    )


def _histogram(who: Visitor) -> None:
    who.page.get_by_role("figure", name=re.compile(f"Histogram of {_TENSOR}")).first.wait_for()


def _map(who: Visitor) -> None:
    who.page.get_by_alt_text("Heat map overlay").wait_for()
    who.settle()
    assert "Where it looked for star" in who.text()
    assert "picture=star_1" in who.page.url and "method=layer-cam" in who.page.url


def _both(who: Visitor) -> None:
    """The second file is gone, too, and asked for by its name where it belongs."""
    second = "shapes_fp16.pth"
    who.main.get_by_text(digest_of(second)[:12]).first.wait_for()
    assert second in who.text()
    who.settle()
    who.page.get_by_test_id("inspector-file").set_input_files(_SAMPLES / second)
    who.main.locator(".mi-answer").first.wait_for()
    assert second in who.text()


_SECOND = f"&with={digest_of('shapes_fp16.pth')}&with-name=shapes_fp16.pth" if _SAMPLES.is_dir() else ""
_LINKS = (
    Link("overview", _SICK, _text("5 NaN", ".mi-finding")),
    Link("contents", _SICK, _text("Code named in the file")),
    Link("tensors", _SICK, _histogram, f"&tensor={_TENSOR}"),
    Link("weights", _SICK, _histogram, f"&tensor={_TENSOR}"),
    Link("projector", _SICK, _text("conv5.0.weight", ".mi-answer")),
    Link("architecture", _SICK, _text("shufflenet_v2_x0_5", ".mi-answer")),
    Link("explain", "shapes.safetensors", _map, "&picture=star_1&method=layer-cam"),
    Link("evaluation", "shapes.safetensors", _text("Choose pictures in class folders")),
    Link("compare", "shapes.pth", _both, _SECOND),
    Link("repair", "shapes_dp.pth.tar", _text('All 338 tensors fit once "module." is dropped', ".mi-answer")),
    Link("convert", _SICK, _text("Every tensor under its own name")),
    Link("files", "shapes_run.zip", _text("8 checkpoints", ".mi-answer"), names=("shelf", "shelf-name")),
    Link("run", "shapes_run.zip", _text("7 checkpoints of 17 tensors", ".mi-answer"), names=("run", "run-name")),
)


def follow(browser: Browser, url: str, token: str, link: Link) -> None:
    """A visitor whom nobody knows, from the link to what it showed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.request.get(f"{url}/?token={token}")
    page = context.new_page()
    page.set_default_timeout(2 * PATIENCE)
    who = Visitor(page=page, url=url)
    page.on("pageerror", lambda error: who.troubles.append(str(error)))
    who.open(link.address())
    text = who.text()
    assert "is not on the server any more" in text and link.file in text, f"{link.page}: {text[:300]!r}"
    page.get_by_test_id("inspector-file").set_input_files(_SAMPLES / link.file)
    try:
        link.shows(who)
    except Exception as error:
        raise AssertionError(f"At {page.url}: {who.text()[-900:]!r}") from error
    who.settle()
    assert "is not on the server any more" not in who.text(), link.page
    held = f"{link.names[0]}={digest_of(link.file)}"
    assert f"/{link.page}" in page.url and held in page.url, page.url
    who.check_calm()
    context.close()


@pytest.mark.timeout(900)
def test_every_page_asks_for_the_file_of_its_link_and_shows_it_again(
    browser: Browser, tmp_path: Path, thorough: bool
) -> None:
    if not thorough:
        pytest.skip("with --thorough")
    port = free_port()
    # Each page finds an empty store.
    for link in _LINKS:
        with running_app(tmp_path, port=port) as server:
            follow(browser, server.url, server.token, link)
        shutil.rmtree(server.store)
