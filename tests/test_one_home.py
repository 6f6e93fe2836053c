"""What several parts of the package need to know is written down once: copies drift apart."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
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


@pytest.mark.parametrize(
    ("name", "others"),
    # What a model holds besides weights (params), and endings by which pasted text is known to be a list of keys.
    [("n_averaged", {"params/roles.py"}), ("total_params", {"params/roles.py", "pasted/key_lists.py"})],
)
def test_what_is_bookkeeping_stands_in_one_list(name: str, others: set[str]) -> None:
    assert _files_that_list(name) - others == {"checkpoint/bookkeeping.py"}
