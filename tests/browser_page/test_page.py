"""The page itself, packed and opened: the same answers in a real browser as on the command line, and nothing asked of
anybody else. Runs where npm's package is (`npm ci --prefix site`), with `make thorough`."""

from __future__ import annotations

import io
import json
import lzma
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.browser.session import Session
from inspector.exports.writers import WRITERS

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_models" / "files"
DIST = ROOT / "site" / "dist"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "site")]

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(1800)]
PATIENCE = 240_000
WRITTEN = ("shapes_dp.pth.tar", "shapes_fp16.pth", "shapes_script.pt", "shapes_vit.safetensors", "shapes_sharded.zip")


def test_a_first_visit_stays_small_and_little_is_compiled_in_the_page(dist: Path) -> None:
    from build import squeezed_nbytes

    assert squeezed_nbytes(path for path in dist.rglob("*") if path.is_file()) < 8_000_000
    [packed] = dist.glob("page-*/package.xz.packed")
    names = zipfile.ZipFile(io.BytesIO(lzma.decompress(packed.read_bytes()))).namelist()
    assert {"inspector/overview.pyc", "inspector/readers/formats/torch_zip.pyc"} <= set(names)
    # What a first file does not need stays as text, and nothing lies there twice.
    assert "inspector/error_messages/fit.py" in names
    assert not {name.removesuffix("c") for name in names if name.endswith(".pyc")} & set(names)


# In the browser itself.


@pytest.fixture(scope="module")
def page(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    troubles: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    made = context.new_page()
    made.on("pageerror", lambda error: troubles.append(str(error)))
    made.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    # The dialog of a real browser cannot be driven: a download is what all browsers have.
    made.add_init_script("window.showSaveFilePicker = undefined")
    made.goto(address)
    made.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    yield made
    assert [url for url in asked if not url.startswith((address, f"blob:{address}"))] == []
    assert troubles == []
    context.close()


def _open(page: Page, path: Path) -> None:
    page.set_input_files("#file", str(path))
    page.wait_for_selector(f"#name >> text={path.name}", timeout=PATIENCE)
    _settled(page)


def _settled(page: Page) -> None:
    page.wait_for_selector("html[data-busy=false]", timeout=PATIENCE)


@pytest.mark.parametrize("name", WRITTEN)
def test_the_page_shows_and_writes_what_the_command_line_does(page: Page, name: str, tmp_path: Path) -> None:
    session = Session()
    path = SAMPLES / name
    told = json.loads(session.answer(json.dumps({"ask": "open", "path": str(path)})))["value"]
    _open(page, path)
    shown = " ".join(page.inner_text("#part-answers").split())
    assert told["name"] == page.inner_text("#name")
    assert "Nothing was executed" in shown or "names no code" in shown
    session.answer(json.dumps({"ask": "repair", "path": str(path)}))
    page.click("#tab-repair")
    page.wait_for_selector(".controls select", timeout=PATIENCE)
    for writer in WRITERS:
        page.select_option(".controls select", writer.id)
        page.click(".controls button")
        page.wait_for_selector(".result button", timeout=PATIENCE)
        _settled(page)
        with page.expect_download(timeout=PATIENCE) as download:
            page.click(".result button")
        question = {"ask": "write", "path": str(path), "kind": "repair", "folder": str(tmp_path), "writer": writer.id}
        written = json.loads(session.answer(json.dumps(question)))["value"]
        assert Path(download.value.path()).read_bytes() == Path(written["path"]).read_bytes(), writer.id
        assert written["sha256"] in page.inner_text(".result")


def test_first_numbers_and_a_second_file(page: Page) -> None:
    """What Python answers there is what it answers here."""
    session, path = Session(), SAMPLES / "shapes_dp.pth.tar"
    session.answer(json.dumps({"ask": "open", "path": str(path)}))
    asked = {"ask": "values", "path": str(path), "set": 0, "row": 0}
    told = json.loads(session.answer(json.dumps(asked)))["value"]
    _open(page, path)
    page.click("#tab-tensors")
    page.click(".tensor-table .rows .name button >> nth=0", timeout=PATIENCE)
    page.wait_for_selector(".values h2", timeout=PATIENCE)
    assert page.locator(".values li").all_inner_texts() == told["values"]
    other = SAMPLES / "shapes_fp16.pth"
    asked = {"ask": "compare", "path": str(path), "other": str(other)}
    right = json.loads(session.answer(json.dumps(asked)))["value"]
    page.click("#tab-compare")
    page.set_input_files("#second", str(other))
    page.wait_for_selector(".result h2", timeout=PATIENCE)
    assert page.inner_text(".result h2 >> nth=0") == "Beside shapes_fp16.pth"
    text = "html => new DOMParser().parseFromString(html, 'text/html').body.textContent"
    assert page.text_content(".result > div") == page.evaluate(text, right["html"])


def test_the_graph_in_a_file_is_drawn(page: Page) -> None:
    """By the app's scripts, under the page's policy (which would be an error of the console)."""
    session, path = Session(), SAMPLES / "shapes_script.pt"
    session.answer(json.dumps({"ask": "open", "path": str(path)}))
    told = json.loads(session.answer(json.dumps({"ask": "drawing", "path": str(path)})))["value"]
    boxes = json.loads(told["drawn"])
    _open(page, path)
    page.click("#tab-architecture")
    page.wait_for_selector(".network [role=tree][data-drawn]", timeout=PATIENCE)
    _settled(page)
    names = page.locator(".network [role=treeitem]").evaluate_all("all => all.map(one => one.ariaLabel.split(',')[0])")
    assert names and set(names) <= set(boxes["label"])
    first = page.locator(".network [role=treeitem] >> nth=0")
    assert first.locator(".face").evaluate("face => getComputedStyle(face).stroke") not in ("none", "rgb(0, 0, 0)")
    # Its way into the tree is opened, and what the file holds of it is what Python says here.
    place = boxes["path"].index("stage2.0.branch1.0")
    page.fill(".network .query", "stage2.0.branch1.0")
    page.press(".network .query", "Enter")
    page.locator(f".network [data-place='{place}']").wait_for(timeout=PATIENCE)
    page.locator(".network [role=tree]").press("Enter")
    asked = {"ask": "box", "path": str(path), "box": "stage2.0.branch1.0"}
    html = json.loads(session.answer(json.dumps(asked)))["value"]["html"]
    assert "stage2.0.branch1.0.weight" in html
    text = "html => new DOMParser().parseFromString(html, 'text/html').body.textContent"
    page.wait_for_selector(".network + div table", timeout=PATIENCE)
    assert page.text_content(".network + div") == page.evaluate(text, html)
    for kind, begins in (("SVG", b"<svg "), ("PNG", b"\x89PNG")):
        with page.expect_download(timeout=PATIENCE) as download:
            page.click(f".network >> text={kind}")
        assert Path(download.value.path()).read_bytes().startswith(begins)
    # Another view ends the drawing; coming back draws it again.
    page.click("#tab-contents")
    _settled(page)
    page.click("#tab-architecture")
    page.wait_for_selector(".network [role=tree][data-drawn]", timeout=PATIENCE)


def test_an_archive_of_several_is_a_table_and_each_opens_from_it(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "several.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("shapes.safetensors", "hostile.pth"):
            archive.write(SAMPLES / name, f"runs/{name}")
    told = json.loads(Session().answer(json.dumps({"ask": "open", "path": str(path)})))["value"]
    page.set_input_files("#file", str(path))
    page.wait_for_selector("#files table", timeout=PATIENCE)
    _settled(page)
    assert page.inner_text("#files h1") == "several.zip" and told["says"] in page.inner_text("#files")
    first = page.locator("#files tbody tr >> nth=0").inner_text()
    assert "Error" in first and "hostile.pth" in first and "os.system" in first
    page.click("#files >> text=shapes.safetensors")
    page.wait_for_selector("#name >> text=shapes.safetensors", timeout=PATIENCE)
    _settled(page)
    assert "shufflenet_v2_x0_5" in page.inner_text("#part-answers")
    page.click("#tab-tensors")
    page.click("text=Check the numbers", timeout=PATIENCE)
    page.wait_for_selector("text=were counted", timeout=PATIENCE)
    page.click("#tab-overview")
    shown = page.inner_text("#view")
    assert "have not been read" not in shown and "looked at for NaN, infinity and negative variances alone" in shown


def test_two_files_of_one_name_are_both_there(page: Page, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    shutil.copy(SAMPLES / "shapes_vit.safetensors", tmp_path / "a" / "small.pth")
    shutil.copy(SAMPLES / "shapes_dp.pth.tar", tmp_path / "b" / "small.pth")
    page.set_input_files("#file", [str(tmp_path / name / "small.pth") for name in ("a", "b")])
    page.wait_for_selector("#files table", timeout=PATIENCE)
    _settled(page)
    page.wait_for_selector("#said >> text=Several files are called small.pth", timeout=PATIENCE)
    assert page.inner_text("#files h1") == "2 files" and page.title() == "2 files: Model Inspector"
    assert sorted(page.locator("#files tbody td:nth-child(2)").all_inner_texts()) == ["small (2).pth", "small.pth"]
    for name, says in (("small.pth", "vit"), ("small (2).pth", "shufflenet_v2_x0_5")):
        page.locator("#files button.link", has_text=re.compile(f"^{re.escape(name)}$")).click()
        page.wait_for_function("name => document.getElementById('name').innerText === name", arg=name, timeout=PATIENCE)
        _settled(page)
        assert says in page.inner_text("#part-answers").lower()


def test_the_target_that_was_changed_last_counts(page: Page) -> None:
    _open(page, SAMPLES / "shapes_dp.pth.tar")
    page.click("#tab-repair")
    page.click("summary >> text=Another target", timeout=PATIENCE)
    keys, name = page.get_by_label("List of keys"), page.get_by_label("Target", exact=True)
    keys.fill("conv1.weight")
    name.fill("torchvision/resnet18")
    assert keys.input_value() == "" and "The list of keys was taken out" in page.inner_text("#view")
    page.get_by_label("A second file").set_input_files(str(SAMPLES / "shapes_fp16.pth"))
    assert name.input_value() == ""
    name.fill("torchvision/resnet18")
    assert page.get_by_label("A second file").input_value() == ""
    page.click("text=Compare with it")
    _settled(page)
    assert "resnet18" in page.inner_text("#view section >> nth=0")


def test_no_answer_outlives_its_question(page: Page) -> None:
    _open(page, SAMPLES / "shapes_dp.pth.tar")
    page.click("#tab-tensors")
    page.click(".tensor-table .rows .name button >> nth=0", timeout=PATIENCE)
    page.wait_for_selector(".values h2", timeout=PATIENCE)
    page.fill("input[type=search]", "no such tensor")
    assert page.locator(".values").is_hidden()
    page.evaluate("document.getElementById('paste').open = true")
    page.fill("#pasted", "RuntimeError: Invalid magic number; corrupt file?")
    page.click("#explain")
    page.wait_for_selector("#explained >> text=magic", timeout=PATIENCE)
    page.fill("#pasted", "")
    page.click("#explain")
    assert page.inner_text("#explained") == "Paste it into the box first."


def test_a_folder_with_a_file_too_deep_is_busy_until_its_table_stands(
    chromium: Browser, address: str, tmp_path: Path
) -> None:
    """Python ends and begins anew meanwhile: it was called ready, and the seconds were those of the last try."""
    depth = 60_000
    (tmp_path / "deep.pth").write_bytes(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".")
    shutil.copy(SAMPLES / "shapes_dp.pth.tar", tmp_path)
    # A page of its own: Pyodide tells the console how it ended.
    page = chromium.new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    page.evaluate("""() => {
      const place = document.getElementById('state')
      window.states = []
      const note = () => window.states.push([document.documentElement.dataset.busy, place.innerText])
      new MutationObserver(note).observe(place, {childList: true, characterData: true, subtree: true})
    }""")
    begun = time.monotonic()
    page.set_input_files("#folder", str(tmp_path))
    page.wait_for_selector("#files table", timeout=PATIENCE)
    _settled(page)
    took = time.monotonic() - begun
    states = page.evaluate("window.states")
    assert any("Starting Python" in text for _, text in states)
    ready = [number for number, (_, text) in enumerate(states) if "Ready" in text]
    # The folder is asked about as one checkpoint first, and then file by file.
    assert ready[-1] == len(states) - 1 and len(ready) <= 2
    assert all(busy == "true" for number, (busy, _) in enumerate(states) if number not in ready)
    told = float(page.inner_text("#files p >> nth=0").partition(" in ")[2].partition(" s")[0])
    assert took / 2 < told <= took + 0.1
    page.close()


def test_the_answer_is_in_sight_on_a_telephone_and_the_treemap_is_as_wide_as_the_page(page: Page) -> None:
    _open(page, SAMPLES / "shapes_dp.pth.tar")
    page.click("#tab-architecture")
    page.wait_for_selector("#view figure svg", timeout=PATIENCE)
    width = "at => document.querySelector(at).getBoundingClientRect().width"
    assert page.evaluate(width, "#view figure svg") == page.evaluate(width, "#view figure") > 900
    page.set_viewport_size({"width": 420, "height": 900})
    try:
        page.click("#tab-overview")
        _settled(page)
        page.evaluate("scrollTo(0, 0)")
        assert page.evaluate("document.querySelector('.answers').getBoundingClientRect().top") < 300
        assert page.evaluate("document.documentElement.scrollWidth") == 420
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_a_hostile_name_stays_text(page: Page, tmp_path: Path) -> None:
    header = b'{"<img src=x onerror=alert(1)>":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    _open(page, path)
    for tab in ("contents", "tensors", "architecture", "overview"):
        page.click(f"#tab-{tab}")
        _settled(page)
        assert page.locator("#view img").count() == 0
    page.click("#tab-tensors")
    assert page.inner_text(".tensor-table .rows .name") == "<img src=x onerror=alert(1)>"


def test_it_works_again_without_a_network(page: Page, address: str) -> None:
    page.wait_for_timeout(3_000)  # the service worker takes its copies
    page.context.set_offline(True)
    try:
        page.reload()
        page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
        _open(page, SAMPLES / "shapes_dp.pth.tar")
        assert "DataParallel" in page.inner_text("#part-findings")
    finally:
        page.context.set_offline(False)


def test_what_was_open_is_opened_again_after_a_stop(page: Page) -> None:
    _open(page, SAMPLES / "shapes_vit.safetensors")
    name = page.inner_text("#name")
    page.evaluate("document.getElementById('stop').click()")
    page.wait_for_selector("text=Stopped.", timeout=PATIENCE)
    page.wait_for_function("!document.querySelector('#tabs button').disabled", timeout=PATIENCE)
    assert page.inner_text("#name") == name


def test_stop_ends_python_and_the_page_goes_on(page: Page) -> None:
    page.evaluate("document.getElementById('stop').click()")
    page.wait_for_selector("text=Ready.", timeout=PATIENCE)
    _open(page, SAMPLES / "shapes_vit.safetensors")
