"""axe-core over the page's own parts: the drawing, the header, checked numbers, files and what Convert asks; both
themes, wide and narrow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.browser.session import Session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SAMPLES = Path(__file__).resolve().parents[2] / "sample_models" / "files"
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(600)]
PATIENCE = 240_000
_RUN = """async () => {
  const { violations } = await axe.run(document, { rules: { 'label-content-name-mismatch': { enabled: true } } })
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`))
  const over = document.documentElement.scrollWidth - innerWidth
  const cut = [...document.querySelectorAll('#view select')].filter((one) => {
    const words = new OffscreenCanvas(1, 1).getContext('2d')
    words.font = getComputedStyle(one).font
    return words.measureText(one.selectedOptions[0].textContent).width > one.clientWidth
  })
  return [...found, ...(over > 0 ? [`${over} pixels wider than the screen`] : []), ...cut.map((one) => one.ariaLabel)]
}"""
# Words over a drawn shape, of which axe says nothing: the least contrast, as WCAG has it.
_LEAST = """(items) => {
  const line = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  const paint = (...colours) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d')
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1) }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((one) => line(one / 255))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
  }
  const ground = getComputedStyle(document.body).backgroundColor
  return Math.min(...items.flatMap((item) => {
    const face = getComputedStyle(item.querySelector('.face')).fill
    return [...item.querySelectorAll('text')].map((text) => {
      const [a, b] = [paint(ground, face), paint(ground, face, getComputedStyle(text).fill)]
      return Math.max(a, b) / Math.min(a, b)
    })
  }))
}"""


@pytest.fixture(scope="module")
def page(chromium: Browser, address: str) -> Iterator[Page]:
    # The page's own policy would keep axe out.
    context = chromium.new_context(bypass_csp=True)
    made = context.new_page()
    made.set_default_timeout(PATIENCE)
    made.goto(address)
    made.wait_for_selector("html[data-ready]")
    yield made
    context.close()


def _look(page: Page, *, drawn: bool = False) -> list[str]:
    package = pytest.importorskip("axe_playwright_python")
    axe = (Path(str(package.__file__)).parent / "axe.min.js").read_text(encoding="utf-8")
    found = []
    for width in (1280, 420):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.wait_for_timeout(400)
            page.evaluate(f"{axe};0")
            found += [f"{width}, {theme}: {one}" for one in page.evaluate(_RUN)]
            if drawn:
                least = page.locator(".network [role=treeitem]:has(.face)").evaluate_all(_LEAST)
                found += [f"{width}, {theme}: words on a box at {least:.2f}"] if least < 4.5 else []
    return found


def _opened(page: Page, path: Path, tab: str) -> None:
    page.set_input_files("#file", str(path))
    page.wait_for_selector(f"#name >> text={path.name}")
    page.wait_for_selector("html[data-busy=false]")
    page.click(f"#tab-{tab}")
    page.wait_for_selector("html[data-busy=false]")


def test_the_drawing_and_the_header_above_it(page: Page) -> None:
    path = SAMPLES / "shapes_script.pt"
    session = Session()
    session.answer(json.dumps({"ask": "open", "path": str(path)}))
    told = json.loads(session.answer(json.dumps({"ask": "drawing", "path": str(path)})))["value"]
    place = json.loads(told["drawn"])["path"].index("stage2.0.branch1.0")
    _opened(page, path, "architecture")
    page.wait_for_selector(".network [role=tree][data-drawn]")
    assert _look(page, drawn=True) == []
    page.fill(".network .query", "stage2.0.branch1.0")
    page.press(".network .query", "Enter")
    page.locator(f".network [data-place='{place}']").wait_for()
    page.locator(".network [role=tree]").press("Enter")
    page.wait_for_selector(".network + div table")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.locator("header").bounding_box()["y"] == 0  # type: ignore[index]
    assert _look(page, drawn=True) == []


def test_what_convert_asks(page: Page, tmp_path: Path) -> None:
    """What every name begins with, and what is not whole."""
    header = {f"net.{n}.weight": {"dtype": "F32", "shape": [1], "data_offsets": [4 * n, 4 * n + 4]} for n in range(3)}
    text = json.dumps(header).encode()
    own = tmp_path / "own.safetensors"
    own.write_bytes(len(text).to_bytes(8, "little") + text + bytes(12))
    _opened(page, own, "convert")
    page.wait_for_selector("#view fieldset")
    assert _look(page) == []
    page.check("#view fieldset input[value=net]")
    page.click("#view button >> text=Unwrap")
    page.wait_for_selector(".result button")
    assert "net" in page.inner_text("#view .result >> nth=-1")
    _opened(page, SAMPLES / "truncated.pth", "convert")
    page.wait_for_selector("#view input[type=checkbox] >> nth=1")
    assert _look(page) == []


def test_checked_numbers_and_a_table_of_files(page: Page, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "odd.pth"
    torch.save({"a.weight": torch.tensor([[1.0, float("nan")], [0.0, 2.0]]), "steps": torch.arange(3)}, path)
    _opened(page, path, "tensors")
    page.click("text=Check the numbers")
    page.wait_for_selector("#view section h2 >> text=The numbers")
    assert "a.weight holds 1 NaN (25.0 %) among 4, the first at [0, 1]." in page.inner_text("#view section >> nth=0")
    page.click("#view summary >> text=1 tensor not counted")
    assert _look(page) == []
    page.set_input_files("#file", [str(SAMPLES / "shapes_dp.pth.tar"), str(path)])
    page.wait_for_selector("#files table")
    page.wait_for_selector("html[data-busy=false]")
    assert page.locator("#files tbody tr").count() == 2
    assert _look(page) == []
    with page.expect_download() as download:
        page.click("#files button >> text=As JSON")
    assert json.loads(Path(download.value.path()).read_text())["name"] == "."
