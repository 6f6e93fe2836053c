"""How it stands with each of the four answers about a file, in a word or three: for terminal, pages and report."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.findings import Severity
from inspector.overview import Answer, Topic

# With nothing to say against it, an answer is well. Errors and warnings are counted in the last of the answers, and the
# first two are no findings: "warning" beside "no warning" would be one of two.
_WORDS = {Severity.ERROR: "Error", Severity.WARNING: "Warning", Severity.NOTICE: "Note", Severity.INFO: "OK"}
_TYPES = 3
_OF_TOPIC = {
    Topic.LOADING: {Severity.WARNING: "Not as it is", Severity.ERROR: "Fails"},
    Topic.MODEL: {Severity.WARNING: "Which one?", Severity.ERROR: "Not whole"},
}


def types_line(dtypes: Sequence[str]) -> str:
    """Those that come first, and how many more there are."""
    left = len(dtypes) - _TYPES
    return ", ".join(dtypes[:_TYPES]) + (f" and {left} more" if left > 0 else "")


def answer_word(answer: Answer) -> str:
    """ "?" for what was not examined."""
    if answer.severity is None:
        return "?"
    return _OF_TOPIC.get(answer.topic, {}).get(answer.severity, _WORDS[answer.severity])
