"""The same weights after a cast: what is not equal to the last bit is exactly the other's cast."""

from __future__ import annotations

from collections import Counter

from inspector.compare.report import Diff, Relation, Verdict
from inspector.compare.verdicts.entry import VerdictEntry, of_relation
from inspector.units import counted


def _decide(diff: Diff) -> Verdict | None:
    moved = of_relation(diff, Relation.CAST, Relation.TRUNCATED)
    same = of_relation(diff, Relation.SAME)
    if not moved or len(moved) + len(same) < len(diff.tensors):
        return None
    cut = of_relation(diff, Relation.TRUNCATED)
    types = Counter((t.a.dtype, t.b.dtype) for t in moved if t.a is not None and t.b is not None)
    ways = ", ".join(f"{n:,} from {a} to {b}" for (a, b), n in types.most_common(4))
    rest = f"; {counted(len(cut), 'tensor')} cut off instead of rounded" if cut else ""
    return Verdict(
        id=VERDICT.id,
        title=VERDICT.title,
        says=f"The same weights after a cast: {counted(len(moved), 'tensor')} ({ways}) bit for bit, "
        f"{len(same):,} as they were{rest}.",
        proved=True,
        test="each tensor cast to the other's type, compared bit for bit",
        number=1.0,
        threshold=1.0,
        refuted_by="one element that the cast does not give",
        subjects=tuple(t.name for t in moved),
    )


VERDICT = VerdictEntry(
    id="after-cast",
    title="Same after a cast",
    says="Every tensor is equal to the last bit, or exactly what a cast to the other's type makes of it.",
    decide=_decide,
    settles=True,
)
