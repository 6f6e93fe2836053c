"""From opening the app to the answer: clicks, seconds and how far down the page it stands, in a real browser.

    python benchmarks/bench_first_minute.py [--only sample] [--netron /path/to/netron]

Five inputs: a sample; 100 MB (a ResNet-50 with random weights) and 2 GB by upload; the same 2 GB behind an address on
this machine; 20,000 tensors of a mixture of experts. The 2 GB are a ResNet-50's names and one tensor that makes it so
large, all numbers zero, in a sparse file: the browser reads and the server stores every byte of them. The clock runs
from the click, the drop or the last key until the element that holds the answer is seen; "from the top" is where it
begins, in pixels of a window of 1280 x 900. A page is asked for from the one before, by its link. CPU seconds are those
of the server and all its processes until then, which a machine with other work on it changes less.

With --netron the same files are dropped on netron's page, until its first box stands there.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

from bench_drawing import DRAWN_BY_NETRON, _process  # noqa: E402
from bench_pages import _processor_seconds, make_files  # noqa: E402
from bench_upload_ahead import sparse_safetensors  # noqa: E402
from browser import find  # noqa: E402
from running_app import FLAGS, SETTLED, Server, running_app  # noqa: E402
from serving import Handler, serving  # noqa: E402

PATIENCE = 150_000  # milliseconds
_MAIN = "[data-testid=stMain]"
#: Page -> what holds its answer: the first that is seen.
ANSWERS = {
    "Overview": f"{_MAIN} .mi-verdict",
    "Contents": f"{_MAIN} h2 >> text=Code named in the file",
    "Tensors": f"{_MAIN} [data-testid=stDataFrame]",
    "Weights": f"{_MAIN} .mi-answer, {_MAIN} [data-testid=stAlert]",
    "Architecture": f"{_MAIN} .mi-answer",
    "Explain": f"{_MAIN} img:visible, {_MAIN} [data-testid=stAlert]",
    "Repair": f"{_MAIN} .mi-answer, {_MAIN} [data-testid=stAlert], {_MAIN} [class*=st-key-next]",
}
# Where nobody knows the network: what is asked for instead of a map, here the code that builds it.
_UNKNOWN = ANSWERS | {"Explain": f"{_MAIN} [data-testid=stCaptionContainer]:visible, {_MAIN} [data-testid=stAlert]"}
_NONE = "not seen in two and a half minutes"


@dataclass(frozen=True, slots=True)
class Input:
    """How a file comes in. clicks: of whoever opens it. act: does it, on the Open page. answers: as `ANSWERS`."""

    name: str
    clicks: int
    act: Callable[[Any], None]
    file: Path | None
    answers: Mapping[str, str] = field(default_factory=lambda: ANSWERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the name of the inputs to measure")
    parser.add_argument("--netron", help="the program `netron`; without it only ours is measured")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        with serving() as files:
            inputs = [one for one in make_inputs(folder, files) if options.only in one.name]
            for one in inputs:
                place = folder / re.sub(r"\W+", "-", one.name)
                place.mkdir()
                with running_app(place, INSPECTOR_PRIVATE_ADDRESSES="on", INSPECTOR_ADDRESSES="on") as server:
                    print(f"\n{one.name}, load {os.getloadavg()[0]:.1f}\n")
                    print("| page | clicks | s | CPU s | from the top |\n| --- | --- | --- | --- | --- |")
                    for row in walk(browser, server, one):
                        print(f"| {' | '.join(row)} |", flush=True)
        dropped = [one for one in inputs if one.file is not None]
        if options.netron and dropped:
            print("\n| file | netron, s to its first box |\n| --- | --- |")
            for one, seconds in by_netron(browser, options.netron, dropped):
                print(f"| {one.name} | {seconds} |", flush=True)
        browser.close()


def make_inputs(folder: Path, server: Any) -> list[Input]:
    """The files, made here, and how each comes in."""
    import torch
    from safetensors.torch import save_file
    from torchvision.models import resnet50

    torch.manual_seed(0)
    save_file(resnet50().state_dict(), folder / "resnet50.safetensors")
    large = folder / "large.safetensors"
    sparse_safetensors(large, 2_000_000_000)
    experts = make_files(folder)[0]
    server.odd["/large.safetensors"] = lambda handler: _from_disk(handler, large)

    def by_address(page: Any) -> None:
        box = page.get_by_placeholder("https://example.com")
        box.fill(f"{server.base}/large.safetensors")
        page.get_by_role("button", name="Look").click()

    def drop(file: Path) -> Callable[[Any], None]:
        return lambda page: page.get_by_test_id("inspector-file").set_input_files(file)

    def sample(page: Any) -> None:
        page.get_by_role("button", name="DataParallel checkpoint").first.click()

    return [
        Input("sample", 1, sample, None),
        Input("100 MB by upload", 1, drop(folder / "resnet50.safetensors"), folder / "resnet50.safetensors"),
        Input("20,000 tensors by upload", 1, drop(experts), experts, _UNKNOWN),
        Input("2 GB by address", 2, by_address, None),
        Input("2 GB by upload", 1, drop(large), large),
    ]


def _from_disk(handler: Handler, path: Path) -> None:
    size = path.stat().st_size
    asked = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers.get("Range", ""))
    if asked is None or int(asked[1]) >= size:
        handler.answer(416, b"", {"Content-Range": f"bytes */{size}"})
        return
    first, last = int(asked[1]), min(int(asked[2]), size - 1)
    with path.open("rb") as file:
        file.seek(first)
        body = file.read(last - first + 1)
    handler.answer(206, body, {"Content-Range": f"bytes {first}-{last}/{size}", "ETag": '"large"'})


def walk(browser: Any, server: Server, one: Input) -> Iterator[tuple[str, ...]]:
    """A row per page: its name, clicks since the app was opened, seconds, CPU seconds, pixels from the top."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    server.let_in(context)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(server.url)
    page.locator(".mi-title h1").wait_for()
    page.wait_for_function(SETTLED)
    # The first visitor waits until the workers have started; whoever reads the Open page has given them that time.
    page.wait_for_timeout(5000)
    yield "Overview", f"{one.clicks}", *_timed(page, server, one, "Overview", lambda: one.act(page))
    for name in list(ANSWERS)[1:]:
        page.wait_for_function(SETTLED)
        link = page.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile(f"{name}$"))
        yield name, f"{one.clicks + 1}", *_timed(page, server, one, name, link.click)
    context.close()


def _timed(page: Any, server: Server, one: Input, name: str, act: Callable[[], None]) -> tuple[str, str, str]:
    from playwright.sync_api import Error

    used, began = _processor_seconds(server.process.pid), time.perf_counter()
    act()
    # The page before has an answer, too.
    page.wait_for_url(re.compile(name.lower()))
    if name != "Overview":
        page.locator(".mi-title h1").filter(has_text=name).wait_for()
    answer = page.locator(one.answers[name]).first
    try:
        answer.wait_for()
    except Error:
        return "none", "", _NONE
    seconds = time.perf_counter() - began
    cpu = _processor_seconds(server.process.pid) - used
    place = answer.bounding_box()
    return f"{seconds:.1f}", f"{cpu:.1f}", f"{place['y']:.0f} px" if place else "not seen"


def by_netron(browser: Any, netron: str, inputs: list[Input]) -> Iterator[tuple[Input, str]]:
    """Seconds from the drop to the first box of each file, or that there was none in two minutes."""
    from playwright.sync_api import Error

    port = 8722
    with _process([netron, "-p", str(port), "-b"]):
        time.sleep(3)
        for one in inputs:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_timeout(1500)
            if page.get_by_text("Accept").count():
                page.get_by_text("Accept").first.click()
            began = time.perf_counter()
            try:
                page.locator("#open-file-dialog").set_input_files(one.file)
                page.locator(DRAWN_BY_NETRON).first.wait_for(timeout=120_000)
                yield one, f"{time.perf_counter() - began:.1f}"
            except Error as error:
                # What netron says itself cannot be read: its page takes window.eval away, by which a page is asked.
                yield one, f"none in {time.perf_counter() - began:.0f} s ({type(error).__name__})"
            context.close()


if __name__ == "__main__":
    main()
