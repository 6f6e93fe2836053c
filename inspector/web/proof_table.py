"""Proofs as a table: whether each holds, and what was measured."""

from __future__ import annotations

from inspector.keys.report import Proof, Verification
from inspector.render.page_words import in_page_words
from inspector.render.proof_words import proof_word
from inspector.web.text import escaped
from inspector.web.trees import badge, table


def proof_table(verification: Verification, heading: str, key: str, *, of_part: bool = False) -> None:
    """One row per proof. of_part: of a file that holds a part of its network."""
    table(("Proof", heading), [_row(proof, of_part) for proof in verification.proofs], key=key)


def _row(proof: Proof, of_part: bool) -> tuple[str, str]:
    word, tone = proof_word(proof, of_part=of_part)
    return badge(word, "notice" if tone == "unknown" else tone), escaped(in_page_words(proof.says))
