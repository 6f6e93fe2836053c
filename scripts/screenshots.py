"""Pictures of every page, light and dark, wide and narrow, from the real app in a real browser.

    python scripts/screenshots.py docs/images

For looking at, and for the README. Files are named page-theme.png, and page-narrow.png for a telephone's width.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent))

from browser import find
from running_app import FLAGS, ROOT, SETTLED, Server, running_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, NARROW = 1280, 420
TALLEST = 2400
SAMPLES = ROOT / "sample_models" / "files"


@dataclass(frozen=True)
class Shot:
    """One page with the sample that shows it best."""

    page: str
    sample: str


SHOTS = (
    Shot(page="open", sample=""),
    Shot(page="overview", sample="shapes_dp.pth.tar"),
    Shot(page="repair", sample="shapes_dp.pth.tar"),
    Shot(page="convert", sample="shapes_lightning.ckpt"),
    Shot(page="contents", sample="hostile.pth"),
    Shot(page="tensors", sample="shapes.pth"),
    Shot(page="weights", sample="shapes_sick.pth"),
    Shot(page="projector", sample="shapes_sick.pth"),
    Shot(page="architecture", sample="shapes_module.pth"),
    Shot(page="explain", sample="shapes.safetensors"),
    Shot(page="compare", sample="shapes.pth"),
    Shot(page="run", sample=""),
)


def main() -> int:
    """Take them all; 1 without a browser."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", action="append", default=[], help="only this page; may be given several times")
    options = parser.parse_args()
    path = find()
    if path is None:
        print("No Chromium or Chrome was found.", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    options.folder.mkdir(parents=True, exist_ok=True)
    wanted = [shot for shot in SHOTS if not options.page or shot.page in options.page]
    with tempfile.TemporaryDirectory() as folder, running_app(Path(folder)) as server, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        for name, theme, width in (("light", "light", WIDE), ("dark", "dark", WIDE), ("narrow", "light", NARROW)):
            for shot in wanted:
                picture = _take(chromium, server, shot, theme=theme, width=width)
                target = options.folder / f"{shot.page}-{name}.png"
                target.write_bytes(picture)
                print(f"{target} {len(picture) / 1000:.0f} kB")
        chromium.close()
    return 0


def _take(chromium: Browser, server: Server, shot: Shot, *, theme: str, width: int) -> bytes:
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    server.let_in(context)
    page = context.new_page()
    page.set_default_timeout(90_000)
    try:
        page.goto(server.url)
        _settle(page)
        if shot.sample:
            page.get_by_test_id("inspector-file").set_input_files(SAMPLES / shot.sample)
            page.wait_for_url(re.compile("overview"))
            _settle(page)
            digest = page.url.partition("?")[2]
            page.goto(f"{server.url}/{shot.page}?{digest}")
            _settle(page)
        _prepare(page, shot)
        # Streamlit scrolls inside its main part, so the window has to be as high as that.
        high = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": width, "height": max(760, min(high, TALLEST))})
        page.mouse.move(0, 0)
        _settle(page)
        return _small(page.screenshot())
    finally:
        context.close()


def _prepare(page: Page, shot: Shot) -> None:
    """What a visitor would click before there is something to see."""
    if shot.page == "explain":
        page.get_by_role("button", name="square 2").click()
        page.get_by_alt_text("Heat map overlay").wait_for()
    elif shot.page == "tensors":
        page.get_by_role("textbox", name="Filter").fill("conv5.0")
        page.get_by_text("1 tensor of").wait_for()
        _settle(page)
        page.get_by_test_id("stDataFrame").locator("canvas").first.click(position={"x": 20, "y": 55}, force=True)
        page.get_by_test_id("stPlotlyChart").wait_for()
    elif shot.page == "compare":
        page.get_by_role("button", name="Sick weights").click()
        # Both fingerprints, then the strip and what is below.
        page.get_by_role("figure", name="Layers by values heat strip of the second file").wait_for()
        page.get_by_role("figure", name="Change of every tensor, by layer").wait_for()
    elif shot.page == "run":
        page.get_by_test_id("stSidebarNavLink").filter(has_text="Run").click()
        page.get_by_role("button", name=re.compile("Training run")).click()
        page.get_by_role("figure", name=re.compile("Histograms of .* over the run")).wait_for()
    elif shot.page in {"overview", "weights", "projector"}:
        page.get_by_test_id("stPlotlyChart").last.wait_for()
    _settle(page)


def _settle(page: Page) -> None:
    page.locator(".mi-title h1").wait_for()
    page.wait_for_function(SETTLED)
    # Charts and pictures fade in after the script has ended.
    page.wait_for_timeout(1200)
    page.wait_for_function(SETTLED)


def _small(png: bytes) -> bytes:
    """The same pixels in fewer bytes; in exactly their colours where 256 are enough."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    buffer = io.BytesIO()
    if picture.getcolors(256) is not None:
        picture = picture.quantize(256, dither=Image.Dither.NONE)
    picture.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main())
