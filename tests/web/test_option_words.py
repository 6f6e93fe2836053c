"""No page names an option of the command line: every sentence of the core that has one has words for the pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from inspector.errors import UsageError
from inspector.findings import Finding, Severity
from inspector.render.page_words import OPTION_WORDS, in_page_words
from inspector.web.components import _card
from tests.house_parsed import in_one_worker, tree_of

PACKAGE = Path(__file__).resolve().parents[2] / "inspector"
OPTION = re.compile(r"--[a-z][a-z-]+")
# Faces of their own; lines of a shell that are meant as such; and a tool's own option.
NOT_ON_PAGES = ("cli", "web", "render")
SHELL_LINES = {
    "cam/exporting/request.py",
    "catalogue/open.py",
    "giants/measure.py",
    "keys/loading.py",
    "lint/audit.py",
    "sweep/store.py",
}
OTHER_TOOLS = ("llama-gguf-split",)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join("optimizer-groups" if (text := _text(part)) is None else text for part in node.values)
    return None


def _sentences() -> Iterator[tuple[str, str]]:
    """(file, sentence) of every text with an option, docstrings left out."""
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where.split("/")[0] in NOT_ON_PAGES or where in SHELL_LINES:
            continue
        tree = tree_of(path)
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            text = _text(node) if id(node) not in docs | parts else None
            if text is not None and OPTION.search(text) and not any(tool in text for tool in OTHER_TOOLS):
                yield where, text


@in_one_worker
def test_every_sentence_with_an_option_has_words_for_the_pages() -> None:
    found = list(_sentences())
    assert len(found) >= 12
    assert [(where, text) for where, text in found if OPTION.search(in_page_words(text))] == []


def test_the_words_have_no_option_themselves_and_leave_other_text() -> None:
    assert not any(OPTION.search(words) for _, words in OPTION_WORDS)
    for text in ("layer--weight is missing.", "Download or copy it again.", "a--salvage.weight"):
        assert in_page_words(text) == text


def test_a_card_shows_the_box_and_not_the_option() -> None:
    remedy = "A partial repair (--partial) leaves them at their initial value."
    card = _card(Finding(id="missing-tensors", severity=Severity.ERROR, says="3 are missing.", remedy=remedy))
    assert "--partial" not in card and "A part is enough" in card


def test_writing_into_the_target_is_said_as_the_page_has_it() -> None:
    text = "Assumed, because no shape tells: heads = 12. Confirm by writing it into the target."
    assert in_page_words(text).endswith("Confirm it with the target on the Repair page.")
    error = UsageError("Code is not run here.", hint="Name it on the command line: --target code:model.py:build.")
    assert in_page_words(error.hint) == "Name it on the command line, which runs it."
