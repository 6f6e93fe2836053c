"""axe-core over the pages, in both themes, wide and narrow: no violation of ours. Every page with --thorough."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sample_models.labelled import write_labelled

pytestmark = pytest.mark.browser

#: (rule, what its element is marked by, how it begins, why it stays): Streamlit's own elements, which no page of ours
#: can change.
EXCEPTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("list", "stSidebarNavItems", "<ul", "the sidebar's navigation puts a div for each section into its list"),
    ("listitem", "stSidebarNavItems", "<li", "the same: its items lie in these divs"),
    ("presentation-role-conflict", "stFileUploaderDropzone", "<section", "the uploader has a role and a label"),
    # Chromium and Firefox give what scrolls and holds nothing for the focus a place among the Tab's stops themselves.
    ("scrollable-region-focusable", "stCode", "<pre", "the text of a box of code; its copy button takes the focus"),
)
# Not among axe's usual ones: who speaks to the page says the words that they see.
_FURTHER = ("label-content-name-mismatch",)
_RUN = """async ([themes, further]) => {
  const rules = Object.fromEntries(further.map((one) => [one, { enabled: true }]))
  const options = themes ? { runOnly: { type: 'rule', values: ['color-contrast'] } } : { rules }
  const { violations } = await axe.run(document, { ...options, resultTypes: ['violations'] })
  const held = (target) => {
    let root = document, element = null
    for (const part of [target].flat()) { element = root.querySelector(part); root = element?.shadowRoot ?? root }
    const marks = element ? [] : ['gone']
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) marks.push(at.dataset?.testid ?? '')
    return marks
  }
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, html, failureSummary }) =>
    ({ id, html: html.slice(0, 160), says: failureSummary, marks: target.flatMap(held) })))
}"""
# What can be opened on a page and is not: its own boxes, and those of our tables and trees.
_OPEN_ALL = """() => {
  for (const one of document.querySelectorAll('[data-testid=stMain] details:not([open])')) {
    if (one.closest('[data-testid=stExpander]')) one.querySelector('summary').click()
    else one.open = true
  }
}"""
# The page itself is not scrolled sideways: what is wider than a telephone scrolls in a box of its own.
_SIDEWAYS = """() => {
  const main = document.querySelector('[data-testid=stMain]')
  return Math.max(main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth)
}"""
# How far the words on the axes of charts are from the page's ground, as WCAG has it.
_AXES = """() => {
  const line = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  const paint = (colour) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d')
    canvas.fillStyle = getComputedStyle(document.querySelector('.stApp')).backgroundColor
    canvas.fillRect(0, 0, 1, 1)
    if (colour) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1) }
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data
    return 0.2126 * line(r / 255) + 0.7152 * line(g / 255) + 0.0722 * line(b / 255) + 0.05
  }
  const texts = document.querySelectorAll(
    '[data-testid=stPlotlyChart] :is(.xtick, .ytick, .cbaxis, .g-xtitle, .g-ytitle, .cbtitle) text')
  return [...texts].map((one) => {
    const [a, b] = [paint(getComputedStyle(one).fill), paint('')]
    return Math.max(a, b) / Math.min(a, b)
  })
}"""
# Of the chosen tab, whose words axe leaves out: something is drawn under them.
_TAB = """() => {
  const tab = document.querySelector('[data-testid=stTab][aria-selected=true] p')
  return getComputedStyle(tab).color
}"""
# No colour is on its way to another.
_STILL = (
    """() => !document.getAnimations().some((one) => one instanceof CSSTransition && one.playState === 'running')"""
)
_WIDE, _NARROW = {"width": 1280, "height": 900}, {"width": 420, "height": 900}


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python")
    return (Path(str(package.__file__)).parent / "axe.min.js").read_text(encoding="utf-8")


def _is(one: Any, rule: str, mark: str, begins: str, why: str) -> bool:
    return bool(one["id"] == rule and mark in one["marks"] and one["html"].startswith(begins))


class Examiner:
    """Looks at the page as it stands, and notes what breaks a rule."""

    def __init__(self, visitor: Any, axe: str) -> None:
        self.visitor, self.page, self.axe = visitor, visitor.page, axe
        self.found: list[str] = []

    def look(self, where: str, *, themes: bool = True, narrow: bool = False) -> None:
        """themes: in the dark one, too, where colours alone differ. narrow: on a telephone's width, too."""
        self._run(where, themes=themes)
        if narrow:
            self.page.set_viewport_size(_NARROW)
            self._run(f"{where}, narrow", themes=False)
            over = self.page.evaluate(_SIDEWAYS)
            if over > 1:
                self.found.append(f"{where}, narrow: {over} pixels wider than the screen")
            self.page.set_viewport_size(_WIDE)

    def look_plainly(self, where: str) -> None:
        """At a page that is no page of the app, in both themes."""
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            self.page.evaluate(f"{self.axe};0")
            self._note(f"{where}, {theme}", theme=False)

    def open_all(self) -> None:
        """Expanders, and what is folded inside of them."""
        for _ in range(2):
            self.page.evaluate(_OPEN_ALL)
            self.visitor.settle()
            self.page.wait_for_timeout(300)

    def look_thoroughly(self, where: str) -> None:
        """As it stands, with all that can be opened open, and each of its popovers."""
        self.look(where)
        self.open_all()
        self.look(f"{where}, unfolded", narrow=True)
        for place in range(self.page.get_by_test_id("stPopoverButton").count()):
            button = self.page.get_by_test_id("stPopoverButton").nth(place)
            if not button.is_visible():
                continue
            button.click()
            self.page.get_by_test_id("stPopoverBody").first.wait_for()
            self.look(f"{where}, popover {button.inner_text()!r}")
            self.page.keyboard.press("Escape")
            self.page.get_by_test_id("stPopoverBody").first.wait_for(state="detached")

    def _run(self, where: str, *, themes: bool) -> None:
        self.visitor.settle()
        self.page.wait_for_timeout(250)
        if not self.page.evaluate("() => !!window.axe"):
            self.page.evaluate(f"{self.axe};0")
        # A slider's ends come and go with the pointer.
        self.page.wait_for_function(_STILL)
        self._note(where, theme=False)
        if themes:
            self.page.emulate_media(color_scheme="dark")
            self.page.wait_for_timeout(400)
            self.visitor.settle()
            self.page.wait_for_function(_STILL)
            self._note(f"{where}, dark", theme=True)
            self.page.emulate_media(color_scheme="light")

    def _note(self, where: str, *, theme: bool) -> None:
        found = self.page.evaluate(_RUN, [theme, list(_FURTHER)])
        if any("gone" in one["marks"] for one in found):
            # Drawn anew while it was looked at: what it was part of is not told any more.
            self.page.wait_for_timeout(1000)
            found = self.page.evaluate(_RUN, [theme, list(_FURTHER)])
        for one in found:
            if not any(_is(one, *exception) for exception in EXCEPTIONS):
                self.found.append(f"{where}: {one['id']}: {one['html']} {one['says']}")


_CAPTION_OF_DIALOG = """() => [
  ...document.querySelectorAll('[data-testid="stDialog"] [data-testid="stCaptionContainer"]')]
  .map((one) => getComputedStyle(one).color === getComputedStyle(one.parentElement).color)"""


@pytest.fixture
def examiner(visitor: Any, axe: str) -> Any:
    made = Examiner(visitor, axe)
    yield made
    made.page.emulate_media(color_scheme=None)


@pytest.fixture
def thorough_examiner(examiner: Examiner, thorough: bool) -> Examiner:
    if not thorough:
        pytest.skip("with --thorough")
    examiner.page.set_viewport_size(_WIDE)
    return examiner


def _wait_for_figure(examiner: Examiner, name: str) -> None:
    examiner.page.get_by_role("figure", name=re.compile(name)).first.wait_for()


def test_a_file_with_a_broken_tensor_breaks_no_rule(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes_sick.pth")
    examiner.look("Overview")
    # axe knows no colours of SVG: the axes of charts were written in 3.8:1.
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        visitor.settle()
        page.wait_for_function(_STILL)
        ratios = page.evaluate(_AXES)
        assert len(ratios) > 10 and min(ratios) > 4.5, theme
    # A finding leads to its tensor, which the address names.
    page.get_by_test_id("stPageLink-NavLink").filter(has_text="stage3.2.branch2.5.weight").first.click()
    _wait_for_figure(examiner, "Histogram of stage3.2.branch2.5.weight")
    assert "tensor=stage3.2.branch2.5.weight" in page.url
    # The page may be drawn once more after the figure, and the heading then takes the focus again.
    page.wait_for_function("() => document.activeElement.matches('.mi-title h1')")
    assert examiner.found == []


def test_the_drawing_breaks_no_rule(examiner: Examiner, samples: Path) -> None:
    examiner.visitor.upload(samples / "shapes_dp.pth.tar")
    examiner.visitor.visit("Architecture")
    examiner.page.get_by_role("treeitem", name="stage2").first.wait_for()
    examiner.look("Architecture", themes=False)
    assert examiner.found == []
    examiner.page.emulate_media(color_scheme="dark")
    examiner.page.wait_for_function(_STILL)
    examiner.page.wait_for_function(f"() => ({_TAB})() === 'rgb(79, 216, 196)'")
    examiner.page.emulate_media(color_scheme="light")
    # On a narrower screen the drawing goes on to stand in the middle.
    begins = examiner.page.get_by_role("treeitem", name="conv1", exact=False).first
    examiner.page.set_viewport_size(_NARROW)
    examiner.page.wait_for_timeout(400)
    box = begins.bounding_box()
    assert box is not None and box["x"] > 0 and box["x"] + box["width"] < _NARROW["width"]
    examiner.page.set_viewport_size(_WIDE)


def _empty_pages(examiner: Examiner, samples: Path) -> None:
    examiner.visitor.open("/")
    examiner.look_thoroughly("Open")
    for name in ("Files", "Contents", "Tensors", "Weights", "Projector", "Architecture", "Explain", "Evaluation"):
        examiner.visitor.visit(name)
        examiner.look(f"{name}, empty", narrow=True)
    for name in ("Compare", "Run", "Repair", "Convert"):
        examiner.visitor.visit(name)
        examiner.look(f"{name}, empty", narrow=True)


def _contents(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes_sick.pth")
    page.get_by_role("figure", name="Layers by values heat strip").wait_for()
    examiner.look_thoroughly("Overview")
    page.get_by_role("button", name="Make a report").click()
    page.get_by_test_id("stDialog").get_by_role("button", name="Download").wait_for()
    examiner.look("Overview, report", narrow=True)
    # axe cannot tell what ground a dialog stands on: in the dark theme a caption has the letters' own colour.
    captions = page.evaluate(_CAPTION_OF_DIALOG)
    assert captions and all(captions)
    page.keyboard.press("Escape")
    page.get_by_test_id("stDialog").wait_for(state="detached")
    for name in ("Contents", "Convert"):
        visitor.visit(name)
        examiner.look_thoroughly(name)


def _numbers(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes_sick.pth")
    visitor.visit("Weights")
    page.get_by_role("button", name="stage3.2.branch2.5.weight").first.click()
    _wait_for_figure(examiner, "Histogram")
    examiner.look_thoroughly("Weights with a tensor")
    for view, shown in (("Rows", "Rows by magnitude"), ("Values", "First rows and columns"), ("Spectrum", "")):
        page.get_by_role("radio", name=view).click()
        if shown:
            _wait_for_figure(examiner, shown)
        examiner.look(f"Weights, {view}", narrow=True)
    visitor.visit("Tensors")
    page.get_by_role("textbox", name="Filter").fill("conv5.0")
    page.get_by_text("1 tensor of").wait_for()
    visitor.settle()
    page.get_by_test_id("stDataFrame").locator("canvas").first.click(position={"x": 20, "y": 55}, force=True)
    _wait_for_figure(examiner, "Histogram")
    examiner.look_thoroughly("Tensors")
    visitor.visit("Projector")
    page.get_by_test_id("stPlotlyChart").first.wait_for()
    examiner.look_thoroughly("Projector")


def _repair(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes_dp.pth.tar")
    visitor.visit("Repair")
    page.locator("[data-table=proofs]").wait_for()
    examiner.look_thoroughly("Repair")


def _architecture(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes_dp.pth.tar")
    visitor.visit("Architecture")
    page.get_by_role("treeitem", name="stage2").first.click()
    for tab in ("Drawing", "Run it", "Tree", "Table", "Memory", "Time", "Surgery", "Evidence"):
        page.get_by_role("tab", name=tab, exact=True).click()
        examiner.look_thoroughly(f"Architecture, {tab}")


def _explain(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes.safetensors")
    visitor.visit("Explain")
    examiner.look_thoroughly("Explain, choosing")
    page.get_by_role("button", name="circle 1").click()
    page.get_by_alt_text("Heat map overlay").wait_for()
    examiner.look_thoroughly("Explain")
    for part in ("Channels", "Can it be trusted?", "Several pictures", "A run"):
        page.get_by_role("radio", name=part).click()
        examiner.look(f"Explain, {part}", narrow=True)


def _compare(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes.pth")
    visitor.visit("Compare")
    examiner.look("Compare, choosing", narrow=True)
    page.get_by_role("button", name="Sick weights").click()
    page.get_by_test_id("stPlotlyChart").first.wait_for()
    examiner.look_thoroughly("Compare")
    visitor.visit("Run")
    page.get_by_role("button", name=re.compile("Training run")).click()
    _wait_for_figure(examiner, "Histograms of .* over the run")
    examiner.look_thoroughly("Run")
    visitor.visit("Evaluation")
    examiner.look_thoroughly("Evaluation")


def _evaluation(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes.pth")
    visitor.visit("Evaluation")
    with tempfile.TemporaryDirectory() as folder:
        page.get_by_test_id("inspector-file").set_input_files(write_labelled(Path(folder) / "val.zip", each=8))
        page.get_by_role("button", name=re.compile("Evaluate · 32 pictures")).click()
    page.get_by_role("figure", name="Confusion matrix: class by answer").wait_for()
    examiner.look_thoroughly("Evaluation with pictures")


def _hostile(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "hostile.pth")
    for name in ("Overview", "Contents", "Repair"):
        visitor.visit(name)
        examiner.look_thoroughly(f"{name} of a hostile file")
    visitor.open("/")
    page.get_by_test_id("inspector-file").set_input_files(samples / "download_page.pth")
    page.get_by_text("Open another file").wait_for()
    examiner.look("No checkpoint", narrow=True)
    visitor.open("/")
    page.get_by_test_id("inspector-file").set_input_files(samples / "shapes_run.zip")
    page.wait_for_url(re.compile("files"))
    examiner.look_thoroughly("Files")


def _front(examiner: Examiner, samples: Path) -> None:
    """What stands before the app: the form that asks for the token, and the page of no such page."""
    context, own = examiner.page.context.browser.new_context(viewport=_WIDE), examiner.page
    examiner.page = context.new_page()
    examiner.page.goto(f"{examiner.visitor.url}/overview")
    examiner.page.get_by_label("The token").wait_for()
    examiner.look_plainly("The token's form")
    own.goto(f"{examiner.visitor.url}/nothing")
    examiner.page = own
    examiner.look_plainly("No such page")
    context.close()
    own.goto(f"{examiner.visitor.url}/repair?file={'ab' * 32}&name=gone.pth")
    own.get_by_text("of this link is not on the server any more").wait_for()
    examiner.look("A link whose file is gone", narrow=True)


_WALKS = (_front, _empty_pages, _contents, _numbers, _repair, _architecture, _explain, _compare, _evaluation, _hostile)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("walk", _WALKS, ids=lambda walk: walk.__name__.strip("_"))
def test_no_page_breaks_a_rule(walk: Any, thorough_examiner: Examiner, samples: Path) -> None:
    walk(thorough_examiner, samples)
    assert thorough_examiner.found == []
