"""Grown or shrunk: tensors of which one file has more rows, and all that both have are equal."""

from __future__ import annotations

from inspector.compare.report import Diff, Relation, Reshape, Verdict
from inspector.compare.verdicts.entry import VerdictEntry, of_relation
from inspector.units import counted


def _decide(diff: Diff) -> Verdict | None:
    rows = [t for t in of_relation(diff, Relation.RESHAPED) if t.reshape is Reshape.FIRST_ROWS]
    others = [t for t in diff.tensors if t.relation is not Relation.SAME and t not in rows]
    # What only one of the files has may be the rest of it; what changed may not.
    if not rows or any(t.relation not in (Relation.ADDED, Relation.REMOVED) for t in others):
        return None
    larger = sum(t.b.numel > t.a.numel for t in rows if t.a is not None and t.b is not None)
    word = "Grown" if larger == len(rows) else "Shrunk" if not larger else "Grown and shrunk"
    names = ", ".join(t.name for t in rows[:3]) + (" ..." if len(rows) > 3 else "")
    beside = f"; {counted(len(others), 'tensor')} in only one of the files" if others else ""
    same = len(diff.tensors) - len(rows) - len(others)
    return Verdict(
        id=VERDICT.id,
        title=VERDICT.title,
        says=f"{word}: the rows that both files have of {counted(len(rows), 'tensor')} ({names}) are equal to the last "
        f"bit, and so are {counted(same, 'other tensor')}{beside}.",
        proved=True,
        test="the bytes of the first rows",
        number=1.0,
        threshold=1.0,
        refuted_by="one of the rows that both have, if it differed",
        subjects=tuple(t.name for t in rows),
    )


VERDICT = VerdictEntry(
    id="grown",
    title="Grown or shrunk",
    says="Some tensors have more rows in one file, the rows that both have are equal, and nothing else changed.",
    decide=_decide,
)
