"""Waiting threads sleep soon, unless the environment says otherwise."""

import sys

import pytest

from inspector.openmp import share_processors


@pytest.fixture
def bare(monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return monkeypatch


def _said():
    import os

    return os.environ.get("GOMP_SPINCOUNT")


def test_programs_begin_so(bare):
    share_processors()
    assert _said() == "1000"


def test_what_the_environment_says_stands(bare):
    bare.setenv("GOMP_SPINCOUNT", "77")
    share_processors()
    assert _said() == "77"


def test_a_waiting_policy_stands(bare):
    bare.setenv("OMP_WAIT_POLICY", "active")
    share_processors()
    assert _said() is None


def test_where_torch_runs_already_nothing_is_said(bare):
    bare.setitem(sys.modules, "torch", sys)
    share_processors()
    assert _said() is None
