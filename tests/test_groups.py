"""Tests that share what is costly run in one worker: pytest 9.2 and xdist 3.8 together forget it without a word."""

from __future__ import annotations

import pytest


def test_xdist_knows_the_group_of_a_test(request: pytest.FixtureRequest) -> None:
    if not hasattr(request.config, "workerinput"):
        pytest.skip("These tests run in one process.")
    if not request.config.getvalue("loadgroup"):
        pytest.skip("These tests run side by side in no groups.")
    assert request.node.nodeid.endswith("@tests/test_groups.py")
