"""What several parts of the package need to know is written down once: copies drift apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "inspector"


def _collections_with(word: str) -> set[str]:
    """Files with a dict, set, list or tuple that has exactly this text among its keys or elements."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            if any(isinstance(item, ast.Constant) and item.value == word for item in items):
                found.add(str(path.relative_to(PACKAGE)))
    return found


@pytest.mark.parametrize("segment", ["_checkpoint_wrapped_module", "_fpw_module", "_fsdp_wrapped_module"])
def test_the_segments_of_wrappers_stand_in_one_list(segment: str) -> None:
    assert _collections_with(segment) == {"checkpoint/wrappers.py"}


@pytest.mark.parametrize(
    ("name", "others"),
    # What a model holds besides weights (params), and endings by which pasted text is known to be a list of keys.
    [("n_averaged", {"params/roles.py"}), ("total_params", {"params/roles.py", "pasted/key_lists.py"})],
)
def test_what_is_bookkeeping_stands_in_one_list(name: str, others: set[str]) -> None:
    assert _collections_with(name) - others == {"checkpoint/bookkeeping.py"}
