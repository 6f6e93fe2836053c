"""The page Zoo in a real browser: a search, copies, tensors and trunks that files share, and two of them compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_app import running_app

from tests.catalogue.zoo import bring_up_to_date, make_zoo, run_audit
from tests.e2e.conftest import PATIENCE, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("duckdb")
pytestmark = pytest.mark.browser
# Of the box in front of a row: the first one lies below the table's head.
_BOX, _FIRST, _EACH = 16, 55, 35


@pytest.fixture
def on_zoo(browser: Browser, tmp_path: Path) -> Iterator[Visitor]:
    """A visitor of a server whose folder holds the zoo, audited."""
    root = tmp_path / "open"
    root.mkdir()
    make_zoo(root / "zoo")
    run_audit(root / "zoo", tmp_path / "audits", base=root)
    bring_up_to_date(tmp_path / "audits")
    variables = {"INSPECTOR_ROOT": str(root), "INSPECTOR_CATALOGUE": str(tmp_path / "audits"), "INSPECTOR_WORKERS": "0"}
    with running_app(tmp_path, **variables) as server:
        context = browser.new_context(viewport={"width": 1440, "height": 1000})
        server.let_in(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        who = Visitor(page=page, url=server.url)
        page.on("pageerror", lambda error: who.troubles.append(str(error)))
        who.open("/zoo")
        yield who
        context.close()


def rows_of(who: Visitor, count: int) -> list[list[str]]:
    """The table as a screen reader is told it, once it has so many rows."""
    table = who.page.get_by_test_id("stDataFrame").locator(f"canvas table[aria-rowcount='{count + 1}']").first
    table.wait_for(state="attached")
    who.settle()
    return [row.locator("[role=gridcell]").all_text_contents() for row in table.locator("tbody [role=row]").all()]


def choose(who: Visitor, row: int) -> None:
    place = {"x": _BOX, "y": _FIRST + _EACH * row}
    who.page.get_by_test_id("stDataFrame").locator("canvas").first.click(position=place, force=True)
    who.settle()


def show(who: Visitor, part: str, says: str) -> None:
    """says: what stands under its table; until then that of another part may be there, with as many rows."""
    who.page.get_by_test_id("stButtonGroup").get_by_text(part, exact=True).click()
    who.page.get_by_text(says).wait_for()
    who.settle()


def test_from_a_search_to_two_files_held_against_each_other(on_zoo: Visitor) -> None:
    page = on_zoo.page
    assert "7 files of" in on_zoo.text() and "1 file has an error." in on_zoo.text()
    assert rows_of(on_zoo, 7)[0][:2] == ["Error", "evil.pkl"]
    search = page.get_by_role("textbox", name="Search")
    search.fill("tune")
    search.press("Enter")
    assert [row[1] for row in rows_of(on_zoo, 2)] == ["tune1.safetensors", "tune2.safetensors"]
    choose(on_zoo, 0)
    page.get_by_text("No finding in the audit.").wait_for()

    show(on_zoo, "Copies", "The same weights: every tensor of the network")
    weights, files = rows_of(on_zoo, 2)
    assert weights[:2] == ["same weights", "3"] and files[:2] == ["same bytes", "2"]
    choose(on_zoo, 0)
    # The same weights in another format are found, too.
    for name in ("base.pth", "base.safetensors", "copy.safetensors"):
        page.get_by_test_id("stMarkdown").get_by_text(f"zoo/{name}").wait_for()

    show(on_zoo, "Shared tensors", "Equal in type, shape and every byte")
    assert sorted(int(row[1]) for row in rows_of(on_zoo, 6)) == [3, 5, 5, 5, 5, 5]

    show(on_zoo, "Shared trunks", "Files of one trunk share")
    pairs = rows_of(on_zoo, 4)
    (tuned,) = [place for place, row in enumerate(pairs) if row[1] == "zoo/tune1.safetensors"]
    choose(on_zoo, tuned)
    page.get_by_text("5 of 6 tensors of the first are in the other, bit for bit").wait_for()
    page.get_by_role("button", name="What changed, and what that proves").click()
    page.wait_for_url(re.compile("compare.*with="))
    page.get_by_text("Proved: only some layers changed").wait_for()
    # Three files have the base's tensors; the copy is the same file to the store.
    assert re.search(r"tune1\.safetensors and (base|copy)\.(safetensors|pth)", on_zoo.text())
    on_zoo.check_calm()
