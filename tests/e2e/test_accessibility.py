"""axe-core over the pages, in both themes: no violation of ours. Every page at length with --thorough."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

#: (rule, what its element is marked by, why it stays): Streamlit's own elements, which no page of ours can change.
EXCEPTIONS = (
    ("list", "stSidebarNavItems", "the sidebar's navigation puts a div for each section into its list"),
    ("listitem", "stSidebarNavItems", "the same: its items lie in these divs"),
    ("presentation-role-conflict", "stFileUploaderDropzone", "the file uploader's section has a role and a label"),
    ("scrollable-region-focusable", "stCode", "a box of code scrolls and takes no focus; its copy button does"),
    ("color-contrast", "stSelectbox", "the hidden placeholder inside of a box to choose from"),
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
    const marks = []
    for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) marks.push(at.dataset?.testid ?? '')
    return marks
  }
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, html, failureSummary }) =>
    ({ id, html: html.slice(0, 160), says: failureSummary, marks: target.flatMap(held) })))
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python")
    return (Path(str(package.__file__)).parent / "axe.min.js").read_text(encoding="utf-8")


class Examiner:
    """Looks at the page as it stands. themes: in the dark one, too, where colours alone differ."""

    def __init__(self, visitor: Any, axe: str) -> None:
        self.visitor, self.page, self.axe = visitor, visitor.page, axe
        self.found: list[str] = []

    def look(self, where: str, *, themes: bool = True) -> None:
        self.visitor.settle()
        self.page.wait_for_timeout(250)
        if not self.page.evaluate("() => !!window.axe"):
            self.page.evaluate(f"{self.axe};0")
        self._run(where, theme=False)
        if themes:
            self.page.emulate_media(color_scheme="dark")
            self.page.wait_for_timeout(400)
            self.visitor.settle()
            self._run(f"{where}, dark", theme=True)
            self.page.emulate_media(color_scheme="light")

    def _run(self, where: str, *, theme: bool) -> None:
        for one in self.page.evaluate(_RUN, [theme, list(_FURTHER)]):
            if not any(one["id"] == rule and mark in one["marks"] for rule, mark, _ in EXCEPTIONS):
                self.found.append(f"{where}: {one['id']}: {one['html']} {one['says']}")


@pytest.fixture
def examiner(visitor: Any, axe: str) -> Any:
    made = Examiner(visitor, axe)
    yield made
    made.page.emulate_media(color_scheme=None)


def _wait_for_figure(examiner: Examiner, name: str) -> None:
    examiner.page.get_by_role("figure", name=re.compile(name)).first.wait_for()


def test_a_file_with_a_broken_tensor_breaks_no_rule(examiner: Examiner, samples: Path) -> None:
    visitor, page = examiner.visitor, examiner.page
    visitor.upload(samples / "shapes_sick.pth")
    examiner.look("Overview")
    # A finding leads to its tensor, which the address names.
    page.get_by_test_id("stPageLink-NavLink").filter(has_text="stage3.2.branch2.5.weight").first.click()
    _wait_for_figure(examiner, "Histogram of stage3.2.branch2.5.weight")
    assert "tensor=stage3.2.branch2.5.weight" in page.url
    assert page.evaluate("() => document.activeElement.matches('.mi-title h1')")
    assert examiner.found == []


def test_the_drawing_breaks_no_rule(examiner: Examiner, samples: Path) -> None:
    examiner.visitor.upload(samples / "shapes_dp.pth.tar")
    examiner.visitor.visit("Architecture")
    examiner.page.get_by_role("treeitem", name="stage2").first.wait_for()
    examiner.look("Architecture", themes=False)
    assert examiner.found == []


@pytest.mark.timeout(1800)
def test_no_page_breaks_a_rule(examiner: Examiner, samples: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--thorough"):
        pytest.skip("with --thorough")
    visitor, page = examiner.visitor, examiner.page
    visitor.open("/")
    examiner.look("Open")
    names = ("Files", "Contents", "Tensors", "Weights", "Projector", "Architecture", "Explain", "Evaluation")
    for name in (*names, "Compare", "Run", "Repair", "Convert"):
        visitor.visit(name)
        examiner.look(f"{name}, empty", themes=False)
    visitor.upload(samples / "shapes_sick.pth")
    for name in ("Contents", "Tensors", "Projector", "Evaluation", "Compare", "Run", "Convert"):
        visitor.visit(name)
        examiner.look(name)
    visitor.visit("Weights")
    page.get_by_role("button", name="stage3.2.branch2.5.weight").first.click()
    _wait_for_figure(examiner, "Histogram")
    examiner.look("Weights with a tensor")
    visitor.upload(samples / "shapes_dp.pth.tar")
    visitor.visit("Repair")
    page.locator("[data-table=proofs]").wait_for()
    examiner.look("Repair")
    visitor.visit("Architecture")
    page.get_by_role("treeitem", name="stage2").first.click()
    for tab in ("Drawing", "Run it", "Tree", "Table", "Memory", "Surgery", "Evidence"):
        page.get_by_role("tab", name=tab, exact=True).click()
        examiner.look(f"Architecture, {tab}")
    visitor.visit("Explain")
    page.get_by_role("button", name="circle 1").click()
    page.get_by_alt_text("Heat map overlay").wait_for()
    examiner.look("Explain")
    visitor.upload(samples / "hostile.pth")
    for name in ("Overview", "Contents", "Repair"):
        visitor.visit(name)
        examiner.look(f"{name} of a hostile file")
    visitor.open("/")
    page.get_by_test_id("inspector-file").set_input_files(samples / "download_page.pth")
    page.get_by_text("Open another file").wait_for()
    examiner.look("No checkpoint")
    visitor.open("/")
    page.get_by_test_id("inspector-file").set_input_files(samples / "shapes_run.zip")
    page.wait_for_url(re.compile("files"))
    examiner.look("Files")
    assert examiner.found == []
