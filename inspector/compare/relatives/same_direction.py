"""Most large matrices point the same way, beyond what chance and structure give. A likeness: it tells no cause.

Looked at are matrices and kernels of 1,024 elements or more: scales of norms look alike in any two networks. What two
networks may have in common without a common past is taken off first: places where both are zero, the means of rows and
columns, and those of diagonals (identities, bands, Dirac kernels); what is far out is clipped, so that a few places
decide nothing. The rest is compared with the same rows in another order, and by its signs alone. Two trainings from
one seed have 0.92; two trainings of a convex problem from different ones have 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from inspector.compare.relatives.subject import Matrix, Relative, Relatives, Two
from inspector.compare.report import TensorDiff, Verdict
from inspector.units import counted

LEAST_NUMEL = 1024
Z, COSINE = 10.0, 0.1
# Of the signs by themselves, in units of what chance gives.
_SIGNS_Z = 4.0
_SHARE = 0.7
_LARGEST = 24
_ORDERS = 8
_LEAST_ROWS = 8
_SEED = 11
# With one matrix alone there is nothing that could contradict it.
_ALONE = 0.5
# Rows are looked at up to so many elements; diagonals of kernels with so many channels on both sides.
_MOST_NUMEL, _LEAST_DIAGONAL = 1 << 21, 16
_ROUNDS = 3
# Of the median magnitude; 6 of them are four standard deviations of a normal distribution.
_CLIP = 6.0


def _decide(subject: Relatives) -> Verdict | None:
    large = eligible(subject)
    if not large:
        return None
    cosines: dict[str, float] = {}
    alike = size = 0
    for two in subject.each(tuple(large[:_LARGEST])):
        n = two.a.size
        size += n
        found = cosine_of_rest(two)
        if found is not None:
            alike += n
            cosines[two.diff.name] = found
    if not size or alike < _SHARE * size or (len(cosines) < 2 and max(cosines.values(), default=0.0) < _ALONE):
        return None
    low, high = min(cosines.values()), max(cosines.values())
    between = f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
    count = min(len(large), _LARGEST)
    point = "points" if count == 1 else "point"
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"{len(cosines):,} of {counted(count, 'large matrix', 'large matrices')} {point} the same way (centred "
        f"cosine {between}; rows in another order give about 0), as copies trained from one start do. Two trainings "
        "that end in one optimum, as those of a convex problem do, or a structure that both began with, would explain "
        "it as well; which file came from which no number in them tells.",
        proved=False,
        test="centred cosine without common zeros, means and outliers, against the same rows in other orders; signs",
        number=low,
        threshold=COSINE,
        refuted_by="a fixed table, or an optimum, that any two networks of this kind come to",
        subjects=tuple(cosines),
    )


def eligible(subject: Relatives) -> list[TensorDiff]:
    """Matrices that a cosine says something of, the largest first."""
    large = [t for t in subject.weights if t.a is not None and t.a.numel >= LEAST_NUMEL and t.a.shape[0] >= _LEAST_ROWS]
    return sorted(large, key=lambda t: -(t.a.numel if t.a is not None else 0))


def cosine_of_rest(two: Two) -> float | None:
    """Of what is left without common structure; None where it is no more than other orders or chance give."""
    rows = max(_LEAST_ROWS, min(len(two.a), _MOST_NUMEL // two.a.shape[1]))
    a, b = two.a[:rows], two.b[:rows]
    counts = ~((a == 0) & (b == 0))
    n = int(counts.sum())
    if n < LEAST_NUMEL // 4:
        return None
    a, b = (_rest(x, counts, two.kernel) for x in (a, b))
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    if not size:
        return None
    random = np.random.default_rng(_SEED)
    others = [float((a[random.permutation(rows)] * b).sum()) / size for _ in range(_ORDERS)]
    own = float((a * b).sum()) / size
    noise = max(float(np.std(others)), 1 / math.sqrt(n))
    above = own - float(np.mean(others))
    signs = float((np.sign(a) * np.sign(b)).sum()) / math.sqrt(n)
    return own if above > COSINE and above >= Z * noise and signs >= _SIGNS_Z else None


def _rest(x: Matrix, counts: NDArray[np.bool_], kernel: int) -> Matrix:
    """x without the means of its rows, columns and diagonals over the places that count, clipped; 0 elsewhere."""
    rows, columns = x.shape
    x = np.where(counts, x, 0.0)
    groups = [np.zeros(columns, np.int64)[None, :] + np.arange(rows)[:, None], np.arange(columns)[None, :] + 0 * x]
    channels = columns // kernel
    if min(rows, channels) >= _LEAST_DIAGONAL:
        at = np.arange(columns)
        groups.append(((np.arange(rows)[:, None] - at[None, :] // kernel) + channels) * kernel + at[None, :] % kernel)
    places = [group.astype(np.int64).reshape(-1) for group in groups]
    weights = counts.reshape(-1).astype(np.float64)
    totals = [np.maximum(np.bincount(place, weights), 1.0) for place in places]
    for _ in range(_ROUNDS):
        for place, total in zip(places, totals, strict=True):
            mean = np.bincount(place, x.reshape(-1)) / total
            x = np.where(counts, x - mean[place].reshape(x.shape), 0.0)
    scale = float(np.median(np.abs(x[counts])))
    limit = _CLIP * scale if scale else float(np.abs(x).max())
    return np.clip(x, -limit, limit)


RELATIVE = Relative(
    id="same-direction",
    title="Point the same way",
    says="Most of the large matrices point the same way: a centred cosine above 0.1, ten times what the same rows in "
    "other orders give, also without common zeros, means, diagonals and outliers. A likeness: copies trained from one "
    "start have it, and so may a common optimum or a structure that both began with.",
    decide=_decide,
    likeness=True,
)
