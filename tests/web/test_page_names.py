"""What the pages take from our modules must be there, also where no type checker was run.

A name that moved would be found by whoever opens the page otherwise, and only on the way that comes by it.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "pages").glob("*.py"), ROOT / "app.py", ROOT / "ui.py"])


def lacking(source: str) -> list[str]:
    """The names that a script takes from `inspector` and that are not there, as "line: module.name"."""
    tree = ast.parse(source)
    known: dict[str, ModuleType] = {}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "inspector":
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                taken = getattr(module, alias.name, None)
                if taken is None:
                    try:
                        taken = importlib.import_module(f"{node.module}.{alias.name}")
                    except ModuleNotFoundError:
                        found.append(f"{node.lineno}: {node.module}.{alias.name}")
                if isinstance(taken, ModuleType):
                    known[alias.asname or alias.name] = taken
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            module = known[node.value.id]
            if not hasattr(module, node.attr):
                found.append(f"{node.lineno}: {module.__name__}.{node.attr}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_takes_from_our_modules_is_there(page: Path) -> None:
    assert lacking(page.read_text("utf-8")) == []


def test_a_name_that_moved_is_seen() -> None:
    source = (
        "from inspector.web import network\nfrom inspector.graph.types import NoSuch\nnetwork.CARRIES_GRAPH\nnetwork"
    )
    assert lacking(source) == ["2: inspector.graph.types.NoSuch", "3: inspector.web.network.CARRIES_GRAPH"]
