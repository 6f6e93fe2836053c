"""An average: only names prove that. Numbers that lie between two others could be there for many reasons; numbers that
have nothing to do with the other file contradict the names."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.checkpoint.types import StateRole
from inspector.compare.relatives.chance import chance_cosines
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Diff, Verdict
from inspector.units import human_distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """which: "first" or "second". why: what in its names says so."""

    which: str
    why: str


def called_average(diff: Diff) -> Called | None:
    """The one of the two that its names call an average, None where both are called so or neither."""
    a, b = diff.a, diff.b
    if (a.role is StateRole.EMA) == (b.role is StateRole.EMA):
        return None
    return Called(which="first", why=a.why) if a.role is StateRole.EMA else Called(which="second", why=b.why)


def _decide(subject: Relatives) -> Verdict | None:
    called = called_average(subject.diff)
    if not subject.changed or called is None or chance_cosines(subject):
        return None
    relative = subject.diff.totals.relative
    apart = f", {human_distance(relative)} apart (relative L2)" if relative is not None else ""
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"The {called.which} is a moving average by its names ({called.why}){apart}. Of which run the numbers do "
        "not tell.",
        proved=False,
        test="names",
        number=relative,
        threshold=None,
        refuted_by="names that were given by mistake",
    )


RELATIVE = Relative(
    id="average",
    title="Average of weights",
    says="The names of one of the two call it a moving average, and the numbers do not contradict it.",
    decide=_decide,
)
