"""The package, parsed once for all tests that look at its source: they share a worker (the group "house")."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from house import House  # noqa: E402

in_one_worker = pytest.mark.xdist_group("house")


@cache
def house() -> House:
    return House(ROOT)


def tree_of(path: Path) -> ast.Module:
    """Not to be changed: other tests look at the same."""
    return house().trees.get(path) or ast.parse(path.read_text(encoding="utf-8"))
