"""What was proven of a repair or of a written file, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.keys.report import Proof
from inspector.render.html_text import escaped
from inspector.render.page_report.words import table
from inspector.render.proof_words import proof_word


def proofs_table(proofs: Iterable[Proof]) -> str:
    """A row for each: whether it holds, and what was measured."""
    rows = []
    for proof in proofs:
        word, tone = proof_word(proof)
        rows.append((f'<span class="tone {tone}">{word}</span>', escaped(proof.says)))
    return table(("Proof", "What was measured"), rows)
