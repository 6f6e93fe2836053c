"""Transposed: what differs is the first's with its axes exchanged, to the last bit. No shape tells of a square one."""

from __future__ import annotations

from inspector.compare.report import Diff, Relation, Verdict
from inspector.compare.verdicts.entry import VerdictEntry
from inspector.units import counted


def _decide(diff: Diff) -> Verdict | None:
    turned = [t for t in diff.tensors if t.axes]
    if not turned or any(t.relation is not Relation.SAME and not t.axes for t in diff.tensors):
        return None
    square = sum(t.relation is Relation.CHANGED for t in turned)
    names = ", ".join(t.name for t in turned[:3]) + (" ..." if len(turned) > 3 else "")
    rest = len(diff.tensors) - len(turned)
    of_them = f", {square:,} of them square, so that no shape tells" if square else ""
    beside = (
        f"; the other {counted(rest, 'tensor')} {'is' if rest == 1 else 'are'} equal to the last bit" if rest else ""
    )
    return Verdict(
        id=VERDICT.id,
        title=VERDICT.title,
        says=f"Transposed: {counted(len(turned), 'tensor')} ({names}) {'is' if len(turned) == 1 else 'are'} the "
        f"first's with axes exchanged, to the last bit{of_them}{beside}.",
        proved=True,
        test="the bytes with the axes exchanged",
        number=1.0,
        threshold=1.0,
        refuted_by="one element that is not in its exchanged place",
        subjects=tuple(t.name for t in turned),
    )


VERDICT = VerdictEntry(
    id="transposed",
    title="Transposed",
    says="Every tensor that is not equal is the other file's with its axes exchanged, to the last bit.",
    decide=_decide,
    settles=True,
)
