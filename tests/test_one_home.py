"""What several parts of the package need to know is written down once: copies drift apart."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

from inspector.keys.rules import RULES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "inspector"
sys.path.insert(0, str(ROOT / "scripts"))

from house import House  # noqa: E402


@cache
def _house() -> House:
    return House(ROOT)


def _files_that_list(text: str) -> set[str]:
    return {str(p.relative_to(_house().package)) for p in _house().files if text in _house().lists(p)}


@pytest.mark.parametrize("segment", ["_checkpoint_wrapped_module", "_fpw_module", "_fsdp_wrapped_module"])
def test_the_segments_of_wrappers_stand_in_one_list(segment: str) -> None:
    assert _files_that_list(segment) == {"checkpoint/wrappers.py"}


@pytest.mark.parametrize("name", ["n_averaged", "total_ops", "total_params"])
def test_what_is_bookkeeping_stands_in_one_list(name: str) -> None:
    assert _files_that_list(name) == {"checkpoint/bookkeeping.py"}


def test_the_repair_knows_no_rule_by_its_id() -> None:
    """What it must know about one is a field of `Rule`, so that a new rule is one file."""
    ids = {rule.id for rule in RULES}
    assert {
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.value}"
        for path in (PACKAGE / "keys").rglob("*.py")
        if path.parent.name != "rules"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in ids
    } == set()
