"""A change of low rank: what merging a LoRA leaves.

The singular values of the difference end in a cliff at the true rank, down to the rounding of the type. A small
"effective rank" proves nothing: training has that as well, without the cliff. Differences of a few rows (new words of a
vocabulary) have a low rank for another reason and are left alone.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from inspector.compare.relatives.subject import Matrix, Relative, Relatives, Two
from inspector.compare.report import Verdict
from inspector.units import counted

GAP = 30.0
# Full decomposition up to this side; a sketch beyond it.
_WHOLE, _SKETCH = 768, 96
_LEAST_SIDE = 8
_MOST_OF_SIDE = 4
_SEED = 17
_MOST_OTHER_RANKS = 0.3


def _decide(subject: Relatives) -> Verdict | None:
    if not subject.rest_is_same:
        return None
    plain = [t for t in subject.changed if t not in subject.weights]
    if any(t.numbers is None or t.numbers.relative > 1e-3 for t in plain):
        return None
    ranks: dict[str, tuple[int, float]] = {}
    for two in subject.each(subject.weights):
        if np.array_equal(two.a, two.b):
            continue
        found = _rank_of(two)
        if found is None:
            return None
        ranks[two.diff.name] = found
    if not ranks or subject.left_out.keys() & {t.name for t in subject.weights}:
        return None
    counts = Counter(rank for rank, _ in ranks.values())
    rank, most = counts.most_common(1)[0]
    if most < (1 - _MOST_OTHER_RANKS) * len(ranks):
        return None
    gap = min(gap for _, gap in ranks.values())
    among = "all of them" if most == len(ranks) else f"{most:,} of them"
    return Verdict(
        id=RELATIVE.id,
        title=RELATIVE.title,
        says=f"What changed has a low rank: {counted(len(ranks), 'matrix', 'matrices')} differ by rank {rank} in "
        f"{among}, as merging a LoRA of that rank leaves (the next singular value is at least {gap:,.0f} times "
        "smaller). A step or two of plain gradient descent on few samples can leave the same.",
        proved=True,
        test="singular values of the difference: a cliff at one rank, down to rounding",
        number=gap,
        threshold=GAP,
        refuted_by="singular values that fall off without a cliff, as those of training do",
        subjects=tuple(ranks),
    )


def _rank_of(two: Two) -> tuple[int, float] | None:
    """(rank, how many times smaller the next singular value is); None where there is no such cliff."""
    delta = two.b - two.a
    rows, columns = int(delta.any(axis=1).sum()), int(delta.any(axis=0).sum())
    side = min(delta.shape)
    # A merged LoRA moves all rows; of a few rows or columns it is the number of those that is low.
    if side < _LEAST_SIDE or 2 * rows < delta.shape[0] or 2 * columns < delta.shape[1]:
        return None
    values = _singular_values(delta)
    rms = float(np.sqrt(np.mean(two.b * two.b)))
    floor = two.unit * rms * float(np.sqrt(delta.shape[0]) + np.sqrt(delta.shape[1]))
    rank = int((values > floor).sum())
    if rank == 0 or rank > side // _MOST_OF_SIDE or rank >= len(values):
        return None
    below = float(values[rank])
    gap = float(values[rank - 1]) / below if below else float("inf")
    return (rank, min(gap, 1e12)) if gap >= GAP else None


def _singular_values(delta: Matrix) -> NDArray[np.float64]:
    """Descending; the first `_SKETCH` of a large matrix, by two rounds of a random projection."""
    if min(delta.shape) <= _WHOLE:
        return np.asarray(np.linalg.svd(delta, compute_uv=False), np.float64)
    random = np.random.default_rng(_SEED).standard_normal((delta.shape[1], _SKETCH))
    basis, _ = np.linalg.qr(delta @ random)
    basis, _ = np.linalg.qr(delta @ (delta.T @ basis))
    return np.asarray(np.linalg.svd(basis.T @ delta, compute_uv=False), np.float64)


RELATIVE = Relative(
    id="low-rank",
    title="Low-rank change",
    says="Only matrices differ, and the singular values of each difference end in a cliff (30 times or more) at a rank "
    "of at most a quarter of the matrix, the same rank in most of them.",
    decide=_decide,
)
