"""Do the numbers agree with the answers that were given? What witnesses say of them (`keys/witnesses/`) is evidence.

It never fails a repair: whoever answered may know better. A contradiction is said where the proofs are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.keys.report import Proof
from inspector.keys.witnesses.types import Bearing, Statement


def judge_answers(statements: Sequence[Statement]) -> Proof | None:
    """Passed where the numbers speak for each answer that they say anything of; open, with the figure, where they speak
    against one. None where they say nothing of any.
    """
    against = [statement for statement in statements if statement.contradicts]
    if against:
        first = against[0]
        says = f'The numbers speak against "{first.chosen}" for {first.question}, {_instead(first)}. {first.says}'
        return Proof(id="answers", says=says, passed=None)
    agreeing = [statement for statement in statements if statement.chosen in statement.which(Bearing.FOR)]
    if not agreeing:
        return None
    said = " ".join(f'For "{one.chosen}": {one.says}' for one in agreeing)
    return Proof(id="answers", says=f"The numbers speak for what was answered. {said}", passed=True)


def _instead(statement: Statement) -> str:
    others = statement.which(Bearing.FOR)
    return f"and for {' or '.join(others)}" if others else "and for none of the others"
