"""The word for a proof, and its tone: whether it holds, fails, was not possible, or tells of an ill file."""

from __future__ import annotations

from inspector.keys.report import Proof

_WORDS = {True: ("holds", "info"), False: ("fails", "error"), None: ("not possible here", "unknown")}


def proof_word(proof: Proof, *, of_part: bool = False) -> tuple[str, str]:
    """(word, tone as the severities and "unknown" have it). of_part: what holds holds for a part of a network, which
    is no good news of the whole."""
    # The repair is right, and what it repaired answers NaN: neither holds nor fails says that.
    if proof.id == "values" and proof.passed is None:
        return "not finite", "warning"
    if of_part and proof.passed:
        return "holds for the part", "notice"
    # Evidence fails no repair: whoever answered may know better.
    if proof.id == "answers" and proof.passed is None:
        return "spoken against", "warning"
    return _WORDS[proof.passed]
