"""What several parts of the package need to know is written down once: copies drift apart."""

from __future__ import annotations

import ast

import pytest

from inspector.keys.rules import RULES
from tests.house_parsed import house, in_one_worker, tree_of

pytestmark = in_one_worker


def _files_that_list(text: str) -> set[str]:
    return {str(p.relative_to(house().package)) for p, texts in house().lists.items() if text in texts}


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
        f"{path.relative_to(house().package)}:{node.lineno} {node.value}"
        for path in (house().package / "keys").rglob("*.py")
        if path.parent.name != "rules"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and node.value in ids
    } == set()
