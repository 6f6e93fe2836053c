"""The drawing in a real browser, by mouse and by keyboard: what opens, what is told to Python, what is in sight."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inspector.render.drawing_data import drawing_data
from inspector.web.static_files import address_of
from tests.e2e.conftest import PATIENCE, running_app
from tests.e2e.drawings import group, leaf, whole

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("drawing")]


class Shown:
    """A page with one drawing."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.tree = page.get_by_role("tree")
        self.troubles: list[str] = []

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.locator("[role=tree][data-drawn]").wait_for(timeout=PATIENCE)

    def box(self, name: str) -> Any:
        return self.page.get_by_role("treeitem", name=re.compile(name))

    def names(self) -> list[str]:
        return [name.split(",")[0] for name in self.labels()]

    def labels(self) -> list[str]:
        found = self.page.get_by_role("treeitem").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        return [str(label) for label in found]

    def do(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def active(self) -> str:
        said = self.tree.evaluate(
            "tree => tree.getRootNode().getElementById(tree.getAttribute('aria-activedescendant'))"
            "?.getAttribute('aria-label') ?? ''"
        )
        return str(said)

    def press(self, *keys: str) -> str:
        for key in keys:
            self.tree.press(key)
            # Opening goes through the worker.
            self.page.wait_for_timeout(120 if key in ("ArrowRight", "ArrowLeft", " ") else 20)
        return self.active()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    folder = tmp_path_factory.mktemp("drawing")
    with running_app(folder, "tests/e2e/drawing_app.py", INSPECTOR_WORKERS="0") as server:
        yield server, server.url


@pytest.fixture(scope="module")
def resident(browser: Any, address: tuple[Any, str]) -> Iterator[Any]:
    """A page of ours without Streamlit that stays open, so that the browser keeps its process and its scripts."""
    server, url = address
    context = browser.new_context(accept_downloads=True)
    server.let_in(context)
    page = context.new_page()
    page.goto(f"{url}/inspector/health")
    yield page
    context.close()


@pytest.fixture
def shown(resident: Any, address: tuple[Any, str], request: pytest.FixtureRequest) -> Iterator[Shown]:
    """Of the network that the test's parameter names; "residual" without one."""
    options = {
        "net": "residual",
        "query": "",
        "width": 1440,
        "height": 1000,
        "dark": False,
        **getattr(request, "param", {}),
    }
    page = resident.context.new_page()
    page.set_default_timeout(PATIENCE)
    page.set_viewport_size({"width": options["width"], "height": options["height"]})
    page.emulate_media(color_scheme="dark" if options["dark"] else "light")
    here = Shown(page)
    page.on("pageerror", lambda error: here.troubles.append(str(error)))
    page.on(
        "console",
        lambda m: here.troubles.append(m.text) if m.type == "error" and "/_stcore/" not in str(m.location) else None,
    )
    here.open(f"{address[1]}/?net={options['net']}{options['query']}")
    yield here
    page.close()
    assert here.troubles == []


def test_a_box_opens_is_chosen_and_folds_by_mouse(shown: Shown) -> None:
    page = shown.page
    shown.do("Fit")
    assert len(shown.names()) == 21 and "layer3" in shown.names()
    block = shown.box("^0, Bottleneck").first
    assert block.get_attribute("aria-expanded") == "false"
    block.dblclick()
    shown.box("^downsample,").wait_for()
    assert shown.box("^0, Bottleneck").first.get_attribute("aria-expanded") == "true"
    # The double click's first half chose the block, as one click does.
    page.get_by_text("Chosen: layer1.0 Bottleneck").wait_for()
    shown.box("^conv2,").click()
    page.get_by_text("Chosen: layer1.0.conv2 Conv2d").wait_for()
    assert page.locator(".crumbs").inner_text().split("\n")[::2] == ["resnet50", "layer1", "0", "conv2"]
    assert page.locator(".status").inner_text().startswith("layer1.0.conv2 Conv2d · gives 1x64x56x56")
    # Its arrows stand out: one comes, one goes.
    assert page.locator(".near path.line").count() == 2
    shown.box("^0, Bottleneck").first.click(position={"x": 12, "y": 12})
    shown.box("^downsample,").wait_for(state="detached")
    assert len(shown.names()) == 21
    # A run of the page in between has folded nothing else and chosen nothing else.
    assert page.get_by_text("Chosen: layer1.0.conv2 Conv2d").is_visible()


def test_what_a_box_does_is_said_by_its_colour_until_a_column_is_chosen(shown: Shown) -> None:
    page = shown.page
    assert page.locator(".families li").all_inner_texts() == [
        "weights",
        "normalisation",
        "activation",
        "pooling",
        "shape",
    ]

    def fill(name: str) -> str:
        return str(shown.box(name).first.locator(".face").evaluate("face => getComputedStyle(face).fill"))

    by_kind = {name: fill(name) for name in ("^conv1,", "^bn1,", "^relu,", "^maxpool,", "^fc,", "^layer1,", "^output")}
    assert by_kind["^conv1,"] == by_kind["^fc,"]
    assert len(set(by_kind.values())) == 6  # a group is as plain as it was, and so is what has no kind that is known
    page.get_by_label("Colour by").select_option("MACs")
    page.locator(".legend").get_by_text("MACs").wait_for()
    assert page.locator(".families").is_hidden() and fill("^conv1,") != by_kind["^conv1,"]


@pytest.mark.parametrize("shown", [{"width": 1280, "height": 900}], indirect=True)
def test_at_first_sight_it_can_be_read(shown: Shown) -> None:
    """The whole is only shown where its words are not too small for it; a box says what its layer reads."""
    label = shown.tree.locator("text.label").first.evaluate("text => text.getBoundingClientRect().height")
    assert label > 11
    assert shown.tree.locator("text.shape").count() > 5
    assert shown.tree.locator("text.kind").filter(has_text="Conv2d 64x3x7x7").count() == 1
    assert shown.box("^conv1, .*Conv2d.*64x3x7x7.*, gives").count() == 1


def test_the_drawing_is_dragged_and_zoomed(shown: Shown) -> None:
    page, fc = shown.page, shown.box("^fc,")
    shown.do("Fit")
    before = fc.bounding_box()
    stage = shown.tree.bounding_box()
    x, y = stage["x"] + 60, stage["y"] + 60
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    page.get_by_text("Click the drawing first").wait_for()
    assert fc.bounding_box() == before  # the page's wheel is the page's
    page.mouse.down()
    page.mouse.move(x + 100, y + 40, steps=4)
    page.mouse.up()
    page.wait_for_timeout(50)
    after = fc.bounding_box()
    assert (round(after["x"] - before["x"]), round(after["y"] - before["y"])) == (100, 40)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(50)
    assert fc.bounding_box()["width"] > 1.2 * before["width"]
    shown.do("Smaller")
    shown.do("Fit")
    page.wait_for_timeout(50)
    assert fc.bounding_box()["x"] == pytest.approx(before["x"], abs=2)


def test_the_keys_of_a_tree_walk_open_and_choose(shown: Shown) -> None:
    page = shown.page
    shown.tree.focus()
    assert shown.press("ArrowDown").startswith("input")
    assert shown.press("f", "c") == "fc, Linear, gives 1x1000"
    assert shown.press("Home").startswith("input") and shown.press("End").startswith("output")
    page.wait_for_timeout(750)
    assert shown.press("l", "a", "y", "e", "r", "3").startswith("layer3, Sequential")
    assert shown.press("ArrowRight").startswith("0, Bottleneck") and shown.press("ArrowDown") == (
        "1, ×5, Bottleneck, gives 1x64x56x56, 8 boxes inside"
    )
    assert shown.press("ArrowRight", "ArrowRight").startswith("conv1, Conv2d")
    item = shown.box("^conv1,").nth(1)
    assert [item.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize")] == ["3", "1", "8"]
    shown.press("Enter")
    page.get_by_text("Chosen: layer3.1.conv1 Conv2d").wait_for()
    assert shown.press("ArrowLeft").startswith("1, ×5, Bottleneck")
    shown.press("ArrowLeft")
    assert "downsample" not in shown.names() and shown.active().startswith("1, ×5, Bottleneck")
    assert shown.press("ArrowLeft").startswith("layer3") and shown.press("ArrowUp").startswith("1, ×3, Bottleneck")
    ring = page.locator(".active > .ring").first
    assert ring.evaluate("ring => getComputedStyle(ring).stroke") != "none"


def test_search_opens_the_way_to_what_it_finds(shown: Shown) -> None:
    page = shown.page
    page.get_by_label("Search by name or kind").fill("downsample")
    page.get_by_text("4 hits").wait_for()
    assert "downsample" not in shown.names()
    page.keyboard.press("Enter")
    shown.box("^downsample,").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("2 of 4").wait_for()
    page.locator(".crumbs").get_by_text("layer2").wait_for()
    page.keyboard.press("Shift+Enter")
    page.get_by_text("1 of 4").wait_for()
    # A module that stands folded in another's box is found by its own path.
    page.get_by_label("Search by name or kind").fill("layer3.4")
    page.get_by_text("1 hit", exact=True).wait_for()
    page.get_by_label("Search by name or kind").fill("no such thing")
    page.get_by_text("0 hits").wait_for()
    assert page.get_by_role("button", name="The next hit").is_disabled()


@pytest.mark.parametrize("shown", [{"query": "&chosen=layer3.4.conv2", "dark": True}], indirect=True)
def test_what_python_chose_is_in_sight_and_coloured(shown: Shown) -> None:
    page = shown.page
    page.locator(".crumbs").get_by_text("layer3").wait_for()
    chosen = page.locator("[role=treeitem][aria-selected=true]")
    assert chosen.get_attribute("aria-label").startswith("conv2, Conv2d")
    stage, box = shown.tree.bounding_box(), chosen.bounding_box()
    assert stage["y"] <= box["y"] and box["y"] + box["height"] <= stage["y"] + stage["height"]
    page.get_by_label("Colour by").select_option("MACs")
    page.locator(".legend").get_by_text("MACs").wait_for()
    # costs() of the paths: 3 and as many as they have letters; "fc" is the shortest.
    assert page.locator(".legend").inner_text().split("\n") == ["MACs", "5", "24"]
    assert shown.box("^bn1, BatchNorm2d, gives 1x64x56x56, 6 MACs").count() == 1
    names = ("^bn1,.* 6 MACs", "^conv2,.* 17 MACs", "^add,")
    fills = [shown.box(name).first.locator(".face").evaluate("face => face.style.fill") for name in names]
    # viridis at 1 and 12 of 19 steps, between two of its ten stops; what is no module has no number.
    assert [re.findall(r"\d+", fill) for fill in fills] == [["70", "19", "101"], ["46", "175", "126"], []]
    page.get_by_label("Colour by").select_option("parameters")
    page.locator(".legend").get_by_text("logarithmic").wait_for()


@pytest.mark.parametrize("shown", [{"net": "dense"}], indirect=True)
def test_a_dense_block_opens_and_shows_the_other_arrows_of_the_box_that_is_asked(shown: Shown) -> None:
    """1,176 arrows among 49 boxes took dagre seven seconds, and nobody could follow one."""
    shown.box("^block").dblclick()
    shown.box("^denselayer1,").wait_for()
    shown.do("Fit")
    shown.box("^denselayer48,").wait_for()
    lines = shown.tree.locator("path.line").evaluate_all(
        "all => all.filter(one => !one.closest('.near')).map(one => one.getAttribute('d'))"
    )
    assert sorted(line.count("M") for line in lines) == [3, 50]  # 48 from layer to layer, one in, one out
    shown.box("^denselayer10,").click()
    shown.page.get_by_text("Chosen: block.denselayer10 _DenseLayer").wait_for()
    assert shown.page.locator(".near .unseen").count() == 9 + 37
    assert "simple columns" not in shown.page.locator(".status").inner_text()


@pytest.mark.parametrize("shown", [{"net": "large"}], indirect=True)
def test_of_ten_thousand_boxes_only_those_in_sight_are_drawn(shown: Shown) -> None:
    page = shown.page
    for depth in (2, 3):
        shown.do("Open all boxes one level deeper")
        page.get_by_text(f"depth {depth} of 3").wait_for()
    assert page.locator(".status").inner_text().startswith("11,900 boxes, 11,900 shown")
    counted = []
    for way in ("Fit", *["Larger"] * 14):
        shown.do(way)
        page.wait_for_timeout(30)
        counted.append(shown.tree.evaluate("tree => tree.querySelectorAll('*').length"))
    assert max(counted) < 6000 and min(counted) > 10
    page.get_by_label("Search by name or kind").fill("stage19.98")
    page.keyboard.press("Enter")
    page.locator(".crumbs").get_by_text("stage19").wait_for()
    assert shown.active().startswith("98, Layer")


def test_the_drawing_is_taken_home_as_svg_and_png(shown: Shown) -> None:
    page = shown.page
    page.get_by_label("Colour by").select_option("MACs")
    with page.expect_download() as waiting:
        shown.do("SVG")
    assert waiting.value.suggested_filename == "resnet50.svg"
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    root, space = ElementTree.fromstring(text), "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "resnet50"
    said = {element.text for element in root.iter(f"{space}text")}
    assert {"conv1", "Bottleneck", "×5", "1x64x56x56", "Coloured by MACs: 5 to 24"} <= said
    assert "var(--" not in text and "aria-" not in text and "monospace" in text and "http" not in text.replace(
        "http://www.w3.org/2000/svg", ""
    )  # fmt: skip
    with page.expect_download() as waiting:
        shown.do("PNG")
    head = Path(waiting.value.path()).read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert list(struct.unpack(">II", head[16:])) == [2 * int(root.attrib[name]) for name in ("width", "height")]


@pytest.mark.parametrize("shown", [{"net": "unknown", "width": 390}], indirect=True)
def test_without_arrows_it_says_why_and_fits_a_narrow_screen(shown: Shown) -> None:
    page = shown.page
    assert page.get_by_text("No arrows: names and shapes do not tell what feeds what.").is_visible()
    assert shown.tree.locator("path.line").count() == 0 and "body" in shown.names()
    section = page.locator(".drawing")
    assert section.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


_FIND = """async ([url, drawn, paths]) => {
    const { Model } = await import(url)
    const model = new Model(drawn)
    return paths.map((path) => model.path[model.find(path)] ?? null)
}"""


def test_a_module_folded_into_anothers_box_means_that_box(resident: Any) -> None:
    """Also where several neighbours in turn are folded, and inside of what is folded."""
    turn = group("body.0 … 1", "", [group("body.0", "Block", [leaf("body.0.conv", "Conv2d")]), leaf("body.1", "Pool")])
    pairs = replace(turn, repeat=3, repeated=tuple(f"body.{at}" for at in range(6)))
    inner = group("head.0", "Block", [group("head.0.sub.0", "Sub", [leaf("head.0.sub.0.fc", "Linear")], repeat=4)])
    blocks = replace(inner, repeat=2, repeated=("head.0", "head.1"))
    drawn = json.loads(drawing_data(whole("net", [pairs, blocks], ()), {}))
    asked = {
        "body.0": "body.0",
        "body.4": "body.0",
        "body.4.conv": "body.0.conv",
        "body.5": "body.1",
        "head.1": "head.0",
        "head.1.sub.3.fc": "head.0.sub.0.fc",
        "body.6": None,
        "head.10": None,
        "head.1.gone": None,
    }
    found = resident.evaluate(_FIND, [address_of("drawing/model.js"), drawn, list(asked)])
    assert dict(zip(asked, found, strict=True)) == asked
