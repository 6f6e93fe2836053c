"""Do large matrices of two files point as those of two networks that have nothing to do with each other?"""

from __future__ import annotations

import math

from inspector.compare.relatives.same_direction import eligible
from inspector.compare.relatives.subject import Relatives

#: In units of what chance gives. Of layers of one shape inside a trained network the largest was 4.5 (35 pairs of
#: resnet20's).
CHANCE = 6.0
_SHARE = 0.9


def chance_cosines(subject: Relatives) -> tuple[tuple[float, float], ...]:
    """(centred cosine, the same in units of chance) of each, where nine in ten of two or more are as chance gives."""
    numbers = [t.numbers for t in eligible(subject) if t.numbers is not None]
    found = [(c, abs(c) * math.sqrt(n.finite)) for n in numbers if (c := n.centred_cosine) is not None]
    if len(found) < 2 or sum(z < CHANCE for _, z in found) < _SHARE * len(found):
        return ()
    return tuple(found)
