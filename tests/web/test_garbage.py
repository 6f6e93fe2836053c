"""What a large import brings is searched for garbage once, what comes later as before."""

import gc
import sys
import types
import weakref

import pytest
from streamlit import config

from inspector.web import gc_freeze as garbage


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(garbage, "_seen", 0)
    # What is in memory stays set aside afterwards, as between the files of tests (tests/conftest.py).


class _Ring:
    def __init__(self) -> None:
        self.me = self


def test_it_is_done_after_large_imports_only(fresh, monkeypatch):
    gc.unfreeze()
    assert garbage.set_aside()
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    assert not garbage.set_aside()
    for number in range(garbage._WORTH_IT - 1):
        monkeypatch.setitem(sys.modules, f"made_up_{number}", types.ModuleType("made_up"))
    assert not garbage.set_aside()
    monkeypatch.setitem(sys.modules, "one_more", types.ModuleType("one_more"))
    assert garbage.set_aside()
    assert not garbage.set_aside()


def test_rings_that_are_made_afterwards_are_collected(fresh):
    assert garbage.set_aside()
    ring = _Ring()
    seen = weakref.ref(ring)
    del ring
    gc.collect()
    assert seen() is None


def test_garbage_of_before_is_not_kept(fresh):
    ring = _Ring()
    seen = weakref.ref(ring)
    del ring
    assert garbage.set_aside()
    assert seen() is None


def test_a_look_at_a_jobs_progress_searches_for_no_garbage():
    """Streamlit's own search at the end of each look, of a fragment, kept a job in the same process from getting on."""
    assert config.get_option("runner.postScriptGC") is False


def test_a_whole_run_searches_once(app, monkeypatch):
    app.run()
    app.run()  # Until here what was imported is set aside, too.
    searches = []
    monkeypatch.setattr(gc, "collect", lambda *of: searches.append(of) or 0)
    app.run()
    assert not app.exception
    assert len(searches) == 1
