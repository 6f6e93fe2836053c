"""No relation found: the large matrices point as two networks do that have nothing to do with each other."""

from __future__ import annotations

import math

from inspector.compare.relatives.shared_start import eligible
from inspector.compare.relatives.subject import Relative, Relatives
from inspector.compare.report import Verdict
from inspector.units import counted

# Of layers of one shape inside a trained network the largest was 4.5 (35 pairs of resnet20's).
_CHANCE = 6.0
_SHARE = 0.9


def _decide(subject: Relatives) -> Verdict | None:
    large = [t for t in eligible(subject) if t.numbers is not None and t.numbers.centred_cosine is not None]
    if len(large) < 2:
        return None
    numbers = [(t.numbers.centred_cosine or 0.0, t.numbers.finite) for t in large if t.numbers is not None]
    far = [abs(c) * math.sqrt(n) for c, n in numbers]
    if sum(z < _CHANCE for z in far) < _SHARE * len(far):
        return None
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"No relation was found: {counted(len(large), 'large matrix', 'large matrices')} have the same shapes, "
        f"and cosines as chance gives them (at most {max(abs(c) for c, _ in numbers):.3f}).",
        proved=False,
        test="centred cosine times the root of the elements",
        number=max(far),
        threshold=_CHANCE,
        refuted_by="a change that leaves no direction as it was, such as another order of channels after long training",
    )


RELATIVE = Relative(
    id="unrelated",
    title="No relation found",
    says="Nine in ten of the large matrices have a centred cosine as chance gives it.",
    decide=_decide,
)
