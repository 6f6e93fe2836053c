"""Proofs as a table: whether each holds, and what was measured."""

from __future__ import annotations

from inspector.keys.report import Proof, Verification
from inspector.render.page_words import in_page_words
from inspector.web.text import escaped
from inspector.web.trees import badge, table

_WORDS = {True: ("holds", "info"), False: ("fails", "error"), None: ("not possible here", "notice")}


def proof_table(verification: Verification, heading: str, key: str) -> None:
    """One row per proof."""
    table(("Proof", heading), [_row(proof) for proof in verification.proofs], key=key)


def _row(proof: Proof) -> tuple[str, str]:
    word, tone = _WORDS[proof.passed]
    return badge(word, tone), escaped(in_page_words(proof.says))
