"""The table of mismatches is whole: 108 classes, and a test for each of them by its number."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))

from catalogue import CATALOGUE, tally  # noqa: E402


def test_every_class_has_a_test_by_its_number():
    text = "".join(path.read_text() for path in HERE.glob("test_catalogue_*.py"))
    numbers = [int(n) for n in re.findall(r"^def test_class_(\d{2,3})_", text, re.M)]
    assert sorted(set(numbers)) == [entry.number for entry in CATALOGUE] == list(range(1, 109))


def test_every_class_is_answered_in_one_way():
    assert sum(tally().values()) == 108 and all(tally().values())
    assert len({entry.what for entry in CATALOGUE}) == 108 and all(entry.by for entry in CATALOGUE)
