"""The same weights under other names: every tensor has a counterpart of the same bytes, some by another name."""

from __future__ import annotations

from inspector.compare.report import Diff, Relation, Verdict
from inspector.compare.verdicts.entry import VerdictEntry
from inspector.units import counted


def _decide(diff: Diff) -> Verdict | None:
    renamed = [t for t in diff.tensors if t.renamed]
    if not renamed or any(t.relation is not Relation.SAME for t in diff.tensors):
        return None
    n = len(diff.tensors)
    return Verdict(
        id=VERDICT.id,
        title=VERDICT.title,
        says=(
            f"The same weights under other names: {counted(n, 'tensor')}, equal to the last bit, "
            f"{len(renamed):,} of them by another name."
        ),
        proved=True,
        test="type, shape and bytes of each pair",
        number=1.0,
        threshold=1.0,
        refuted_by="one pair whose bytes differ, or a tensor without a counterpart",
        subjects=tuple(t.name for t in renamed),
    )


VERDICT = VerdictEntry(
    id="other-names",
    title="Same weights under other names",
    says="Every tensor of both files has a counterpart of the same type, shape and bytes, some under another name.",
    decide=_decide,
)
