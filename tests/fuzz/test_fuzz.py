"""A short run of the fuzzer; the long one is `make fuzz`."""

from __future__ import annotations

import importlib.util
import pickle
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def fuzzer() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz_script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_script"] = module
    spec.loader.exec_module(module)
    return module


def test_two_thousand_mutants_end_in_a_checkpoint_or_an_error_of_ours(fuzzer: ModuleType) -> None:
    counts = fuzzer.fuzz(2000, seed=1)
    assert "bug" not in counts
    assert sum(counts.values()) == 2000
    # Both ends are reached, so the mutants are neither all harmless nor all rubbish.
    assert counts["checkpoint"] > 500 and counts["CorruptFile"] > 20


def test_a_bug_is_counted(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(fuzzer, "exercise", broken)
    assert fuzzer.fuzz(3, seed=0) == {"bug": 3}


def test_mutants_are_seeded(fuzzer: ModuleType, tmp_path: Path) -> None:
    pool = fuzzer.samples(str(tmp_path / "marker"))
    again = [fuzzer.mutate(random.Random(5), pool) for _ in range(2)]
    assert again[0] == again[1]
    # The payload sample is a real one: Python's own loader would run it.
    assert pickle.loads(pool[-5]) is not None and (tmp_path / "marker").exists()
