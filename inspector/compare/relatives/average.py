"""An average: only names prove that. Numbers that lie between two others could be there for many reasons."""

from __future__ import annotations

from inspector.checkpoint.types import StateRole
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Verdict


def _decide(subject: Relatives) -> Verdict | None:
    a, b = subject.diff.a, subject.diff.b
    if not subject.changed or (a.role is StateRole.EMA) == (b.role is StateRole.EMA):
        return None
    which, side = ("first", a) if a.role is StateRole.EMA else ("second", b)
    relative = subject.diff.totals.relative
    apart = f", {relative:.2g} apart (relative L2)" if relative is not None else ""
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"The {which} is a moving average by its names ({side.why}){apart}. Of which run the numbers do not tell.",
        proved=False,
        test="names",
        number=relative,
        threshold=None,
        refuted_by="names that were given by mistake",
    )


RELATIVE = Relative(
    id="average",
    title="Average of weights",
    says="The names of one of the two call it a moving average.",
    decide=_decide,
)
