"""Messages of public threads, pasted as people paste them: the cause, two causes, or no answer; never a wrong one.

All of them in all ways are `python -m benchmarks.bench_pasted`; each is tried here whole, in halves and in some others.
"""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.pasted.judge import Thread, threads, verdict
from benchmarks.pasted.ways import WAYS

_ALWAYS = ("whole", "first half", "second half", "missing list alone", "unexpected list alone")
_STEP = 16


@pytest.mark.parametrize("number", range(len(threads())), ids=lambda n: threads()[n].source)
def test_no_answer_is_wrong(number: int) -> None:
    thread = threads()[number]
    ways = dict.fromkeys((*_ALWAYS, *list(WAYS)[number % _STEP :: _STEP]))
    assert [way for way in ways if verdict(WAYS[way](thread.text), thread.right) == "wrong"] == []


def test_most_whole_messages_are_known() -> None:
    counts = Counter(verdict(thread.text, thread.right) for thread in threads())
    assert len(threads()) >= 150
    assert counts["wrong"] == 0
    assert counts["right"] >= 125
    assert counts["not known"] <= 3


@pytest.mark.parametrize("way", [way for way in WAYS if "half" not in way and "first" not in way and "last" not in way])
def test_what_a_chat_does_to_the_text_changes_nothing(way: str) -> None:
    thread = Thread(
        source="",
        cause="",
        right=("keys-renamed",),
        text='Error(s) in loading state_dict for VGG:\n\tMissing key(s) in state_dict: "features.0.weight", '
        '"features.0.bias", "features.2.weight". \n\tUnexpected key(s) in state_dict: "module.features.0.weight", '
        '"module.features.0.bias", "module.features.2.weight". ',
    )
    assert verdict(WAYS[way](thread.text), thread.right) == ("two named" if "list alone" in way else "right")
