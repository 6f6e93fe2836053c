"""No relation found: the large matrices point as two networks do that have nothing to do with each other."""

from __future__ import annotations

from inspector.compare.relatives.average import called_average
from inspector.compare.relatives.chance import CHANCE, chance_cosines
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Verdict
from inspector.units import counted


def _decide(subject: Relatives) -> Verdict | None:
    cosines = chance_cosines(subject)
    if not cosines:
        return None
    called = called_average(subject.diff)
    named = f" By its names ({called.why}) the {called.which} is an average, but not of the other." if called else ""
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"No relation was found: {counted(len(cosines), 'large matrix', 'large matrices')} have the same shapes, "
        f"and cosines as chance gives them (at most {max(abs(c) for c, _ in cosines):.3f}).{named}",
        proved=False,
        test="centred cosine times the root of the elements",
        number=max(z for _, z in cosines),
        threshold=CHANCE,
        refuted_by="a change that leaves no direction as it was, such as another order of channels after long training",
    )


RELATIVE = Relative(
    id="unrelated",
    title="No relation found",
    says="Nine in ten of the large matrices have a centred cosine as chance gives it.",
    decide=_decide,
    likeness=True,
)
