"""The same weights: every tensor has its counterpart of the same name, type, shape and bytes."""

from __future__ import annotations

from inspector.compare.report import Diff, Relation, Verdict
from inspector.compare.verdicts.entry import VerdictEntry
from inspector.units import counted


def _decide(diff: Diff) -> Verdict | None:
    if not diff.tensors or any(t.relation is not Relation.SAME or t.renamed for t in diff.tensors):
        return None
    n = len(diff.tensors)
    how = "the sha256 of both files" if all(t.by_digest for t in diff.tensors) else "type, shape and bytes of each"
    return Verdict(
        id=VERDICT.id,
        title=VERDICT.title,
        says=f"The same weights: {counted(n, 'tensor')}, equal to the last bit.",
        proved=True,
        test=how,
        number=1.0,
        threshold=1.0,
        refuted_by="one tensor whose type, shape or bytes differ",
    )


VERDICT = VerdictEntry(
    id="same",
    title="Same weights",
    says="Every tensor of both files has a counterpart of the same name, type, shape and bytes.",
    decide=_decide,
)
