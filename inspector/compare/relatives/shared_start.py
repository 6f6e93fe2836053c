"""A shared starting point: weights that point the same way beyond what chance and structure give.

The cosine is of centred matrices and kernels of 1,024 elements or more alone: scales of norms look alike in any two
networks. Structure that all networks have (smooth kernels, a common mean of columns) is taken off by comparing with the
same rows in another order, where a shared start is lost and structure is not. A high cosine never says who came from
whom: two trainings from one seed have 0.92.
"""

from __future__ import annotations

import math

import numpy as np

from inspector.compare.relatives.subject import Matrix, Relative, Relatives
from inspector.compare.report import TensorDiff, Verdict
from inspector.units import counted

LEAST_NUMEL = 1024
Z, COSINE = 10.0, 0.1
_SHARE = 0.7
_LARGEST = 24
_ORDERS = 8
_LEAST_ROWS = 8
_SEED = 11
# With one matrix alone there is nothing that could contradict it.
_ALONE = 0.5


def _decide(subject: Relatives) -> Verdict | None:
    large = eligible(subject)
    if not large:
        return None
    cosines: dict[str, float] = {}
    alike = size = 0
    for two in subject.each(tuple(large[:_LARGEST])):
        n = two.a.size
        own, others = _cosines(two.a, two.b)
        size += n
        noise = max(float(np.std(others)), 1 / math.sqrt(n))
        above = own - float(np.mean(others))
        if above > COSINE and above >= Z * noise:
            alike += n
            cosines[two.diff.name] = own
    if not size or alike < _SHARE * size or (len(cosines) < 2 and max(cosines.values(), default=0.0) < _ALONE):
        return None
    low, high = min(cosines.values()), max(cosines.values())
    between = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
    left = counted(min(len(large), _LARGEST), "large matrix", "large matrices")
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"They share a starting point: {len(cosines):,} of {left} point the same way (centred cosine {between}; "
        "rows in another order give about 0). Whether one was trained from the other, or both from a third, no number "
        "in them tells.",
        proved=False,
        test="centred cosine, against the same rows in other orders",
        number=low,
        threshold=COSINE,
        refuted_by="a fixed table that any two networks of this kind contain",
        subjects=tuple(cosines),
    )


def eligible(subject: Relatives) -> list[TensorDiff]:
    """Matrices that a cosine says something of, the largest first."""
    large = [t for t in subject.weights if t.a is not None and t.a.numel >= LEAST_NUMEL and t.a.shape[0] >= _LEAST_ROWS]
    return sorted(large, key=lambda t: -(t.a.numel if t.a is not None else 0))


def _cosines(a: Matrix, b: Matrix) -> tuple[float, list[float]]:
    """(of the two as they are, of the one's rows in a few other orders against the other)."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    if not size:
        return 0.0, [0.0]
    random = np.random.default_rng(_SEED)
    others = [float((a[random.permutation(len(a))] * b).sum()) / size for _ in range(_ORDERS)]
    return float((a * b).sum()) / size, others


RELATIVE = Relative(
    id="shared-start",
    title="Share a starting point",
    says="Most of the large matrices point the same way: a centred cosine above 0.1, ten times what the same rows in "
    "other orders give. A likeness: it does not tell who came from whom.",
    decide=_decide,
)
