"""Browser tests run last: they are the slowest, and Playwright keeps an event loop in the main thread meanwhile."""

from __future__ import annotations

import os

import pytest

# Before torch is imported, here and in every process that a test starts: side by side they would fight over the cores.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Stable: everything else keeps its order."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
